"""Motifs and discords: against brute force and stumpy, and from the window's values alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.mining.matrix_profile import matrix_profile
from nilometer.mining.motif_finder import Finding, FindingKind, MotifFinder
from nilometer.mining.motifs import FUNCTION
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.table_function import CheckedCall, Miner, MiningError
from tests import naive_mining_shapes as naive

VALUES = st.one_of(
    st.integers(-2, 2).map(float),
    st.floats(-10, 10).map(lambda one: round(one, 3)),
    st.just(math.nan),
)
SMOOTH = st.lists(st.floats(-10, 10).map(lambda one: round(one, 3)), max_size=40)


def findings(values: Sequence[float], length: int, **options: float) -> list[Finding]:
    finder = MotifFinder(length, **options)  # type: ignore[arg-type]
    finder.add(np.array(values))
    return finder.answer()


@given(st.lists(VALUES, max_size=40), st.integers(3, 8))
@settings(max_examples=100, deadline=None)
def test_the_profile_is_that_of_brute_force(values: list[float], length: int) -> None:
    expected = np.array(naive.profile(values, length))
    actual = matrix_profile(np.array(values), length)
    assert np.isinf(actual).tolist() == np.isinf(expected).tolist()
    finite = np.isfinite(expected)
    # Distances near 0 are roots of differences of numbers near 1.
    assert np.square(actual[finite]) == pytest.approx(np.square(expected[finite]), abs=1e-6)


@pytest.mark.parametrize(
    ("level", "height"), [(0.0, 1.0), (1e6, 1e-2), (0.0, 1e-9), (0.0, 1e200), (0.0, 1e-200)]
)
def test_the_profile_does_not_depend_on_level_and_height(level: float, height: float) -> None:
    values = np.cumsum(np.random.default_rng(5).normal(size=300))
    expected = np.array(naive.profile(values.tolist(), 12))
    assert matrix_profile(level + height * values, 12) == pytest.approx(expected, rel=1e-4)


@given(SMOOTH, st.integers(3, 8), st.floats(0.5, 3))
@settings(max_examples=100, deadline=None)
def test_findings_are_those_of_brute_force(values: list[float], length: int, radius: float) -> None:
    zone = math.ceil(length / 4)
    pieces = [values[at : at + length] for at in range(len(values) - length + 1)]
    for one in findings(values, length, motifs=3, discords=2, radius=radius):
        apart = [naive.distance(pieces[one.start], piece) for piece in pieces]
        others = {j: d for j, d in enumerate(apart) if abs(j - one.start) > zone}
        assert one.distance == pytest.approx(min(others.values()), abs=1e-9)
        assert others[one.nearest] == pytest.approx(one.distance, abs=1e-9)
        assert one.start in one.occurrences
        assert all(apart[j] <= radius + 1e-9 for j in one.occurrences if j != one.start)
        # No other subsequence within the radius is left over outside all exclusion zones.
        taken = {j + k for j in one.occurrences for k in range(-zone, zone + 1)}
        assert all(d > radius - 1e-9 for j, d in others.items() if j not in taken)


@given(st.lists(VALUES, max_size=40), st.integers(3, 8))
@settings(max_examples=100, deadline=None)
def test_the_first_motif_is_the_nearest_pair_and_the_first_discord_the_farthest(
    values: list[float], length: int
) -> None:
    profile = [one for one in naive.profile(values, length) if math.isfinite(one)]
    answer = findings(values, length, motifs=1, discords=1, radius=1.0)
    motifs = [one for one in answer if one.kind is FindingKind.MOTIF]
    discords = [one for one in answer if one.kind is FindingKind.DISCORD]
    if not profile or abs(min(profile) - 1.0) < 1e-3:
        return
    assert len(motifs) == (min(profile) < 1.0)
    assert all(one.distance == pytest.approx(min(profile), abs=1e-3) for one in motifs)
    if max(profile) < math.sqrt(length) - 1e-3:  # beyond, flat stretches count as nearer
        assert discords[0].distance == pytest.approx(max(profile), abs=1e-3)


def planted() -> np.ndarray:
    """Noise that has a wave in it three times, at 200, 700 and 1500."""
    values = np.random.default_rng(1).normal(0, 1, 2000)
    wave = 3 * np.sin(np.arange(80) ** 1.5 / 25)
    for at in (200, 700, 1500):
        values[at : at + 80] = wave + np.random.default_rng(at).normal(0, 0.05, 80)
    return values


def test_a_wave_that_repeats_itself_is_found() -> None:
    (motif,) = findings(planted(), 80, motifs=1, discords=0)
    assert motif.start in motif.occurrences
    assert [round(one / 20) * 20 for one in motif.occurrences] == [200, 700, 1500]


def test_a_beat_that_is_like_no_other_is_found() -> None:
    values = np.sin(np.arange(1000) / 4.0) + np.random.default_rng(3).normal(0, 0.05, 1000)
    values[500:512] += 2.0
    (discord,) = findings(values, 30, motifs=0, discords=1)
    assert 470 <= discord.start <= 512
    assert discord.occurrences == (discord.start,)


@pytest.mark.soak  # numba needs half a minute to compile it
@pytest.mark.filterwarnings("ignore")
def test_motifs_are_those_of_stumpy() -> None:
    stumpy, values = import_module("stumpy"), planted()
    profile = stumpy.stump(values, 80).P_
    expected = stumpy.motifs(
        values, profile, max_distance=4.0, cutoff=np.inf, max_matches=None, max_motifs=3
    )[1]
    answer = findings(values, 80, motifs=3, discords=1, radius=4.0)
    assert [set(one.occurrences) for one in answer[:3]] == [set(row) - {-1} for row in expected]
    assert answer[3].start == int(profile.argmax())


def test_exact_repeats_are_counted_from_the_first() -> None:
    answer = findings([0.0, 1.0, 5.0, 2.0, 7.0, 3.0, 3.0, 1.0] * 20, 8, motifs=1)
    assert answer[0].start == 0
    assert answer[0].occurrences == tuple(range(0, 153, 8))


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0] * 50,
        [math.nan] * 50,
        [math.inf] * 50,
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1e308] * 9,
    ],
)
def test_windows_in_which_nothing_can_be_found(values: list[float]) -> None:
    assert findings(values, 5) == []


def test_a_flat_stretch_is_neither_motif_nor_discord() -> None:
    values = np.sin(np.arange(300) / 5.0) + np.random.default_rng(2).normal(0, 0.2, 300)
    values[60:100] = values[200:240] = 1.5
    for one in findings(values, 20, motifs=5, discords=5):
        assert np.ptp(values[one.start : one.start + 20]) > 0
        assert np.ptp(values[one.nearest : one.nearest + 20]) > 0


def call(window: int | None = None, **options: float | None) -> CheckedCall:
    given = {"length": 6, "motifs": 2, "discords": 1, "radius": None, "rows": None}
    return CheckedCall({"value": pa.float64()}, given | options, window)


def rows(values: Sequence[float], begin: int = 0) -> tuple[np.ndarray, dict[str, pa.Array]]:
    times = np.arange(begin, begin + len(values)) * 1000
    return times, {"value": pa.array(values, pa.float64())}


def test_only_the_last_rows_are_looked_at() -> None:
    miner = FUNCTION.miner(call(rows=50), {}, None)
    values = np.random.default_rng(4).normal(size=200).tolist()
    for begin in range(0, 200, 40):
        miner.add(*rows(values[begin : begin + 40], begin))
    fresh = FUNCTION.miner(call(rows=50), {}, None)
    fresh.add(*rows(values[150:], 150))
    assert miner.answer().equals(fresh.answer())
    assert len(miner.save()["values"]) == 50


@given(
    st.lists(VALUES, min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
    st.integers(0, 40),
    st.sampled_from([None, 25]),
)
@settings(max_examples=60, deadline=None)
def test_the_answer_depends_on_the_window_alone(
    values: list[float], cuts: list[int], gone: int, limit: int | None
) -> None:
    one_call = call(1, rows=limit)
    places = sorted(min(cut, len(values)) for cut in cuts)
    miner: Miner = FUNCTION.miner(one_call, {}, None)
    for begin, end in zip([0, *places], [*places, len(values)], strict=True):
        miner.add(*rows(values[begin:end], begin))
        miner.forget(min(gone, begin) * 1000)
        miner = FUNCTION.miner(one_call, {}, decode(encode(miner.save())))
    miner.forget(gone * 1000)
    first = max(gone, 0 if limit is None else len(values) - limit)
    fresh = FUNCTION.miner(one_call, {}, None)
    fresh.add(*rows(values[first:], first))
    assert miner.answer().equals(fresh.answer())


def test_the_function_gives_times() -> None:
    miner = FUNCTION.miner(call(rows=100), {}, None)
    values = [0.0, 1.0, 5.0, 2.0, 0.0, 3.0, 3.0, 9.0, 1.0, 4.0, 0.0, 2.0, 10.0, 4.0, 0.0, 6.0]
    miner.add(*rows([7.0] * 90))
    miner.add(*rows(values, 90))
    answer = miner.answer()
    assert answer.schema.names == [one.name for one in FUNCTION.results(call(rows=100))]
    assert answer.schema.types == [one.kind for one in FUNCTION.results(call(rows=100))]
    first = answer.slice(0, 1).to_pylist()[0]
    assert (first["kind"], first["number"], first["occurrences"]) == ("motif", 1, 2)
    assert first["distance"] == pytest.approx(0.0, abs=1e-9)
    assert [first[name].microsecond for name in ("starts", "nearest")] == [90_000, 100_000]
    assert len(encode(miner.save())) < 2000


def test_something_must_bound_the_window() -> None:
    with pytest.raises(MiningError, match="MOTIFS needs a window, or the number of rows"):
        FUNCTION.results(call())
    with pytest.raises(MiningError, match="two motifs of 6 rows do not fit into 11 rows"):
        FUNCTION.results(call(rows=11))
    with pytest.raises(MiningError, match="at least 3 values, got 2"):
        MotifFinder(2)
