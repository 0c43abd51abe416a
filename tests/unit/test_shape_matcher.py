"""Where a stream looks like a shape: against brute force, and the same for any cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nilometer.mining import shape_candidates
from nilometer.mining.matches import FUNCTION
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.shape_matcher import ShapeMatch, ShapeMatcher
from nilometer.mining.subsequences import distances_at, z_distances, z_normalized
from nilometer.mining.table_function import CheckedCall, Follower, MiningError
from tests import naive_mining_shapes as naive

VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats())
SHAPES = st.lists(st.floats(-10, 10), min_size=3, max_size=7).filter(
    lambda points: max(points) - min(points) > 0.1
)


def in_pieces(
    values: Sequence[float], cuts: Sequence[int], shape: Sequence[float], limit: float, how: str
) -> list[ShapeMatch]:
    """The matches of values that come in pieces, the matcher saved and loaded between them."""
    matcher, matches = ShapeMatcher(shape, limit, how), []
    for begin, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        matches += matcher.add(np.array(values[begin:end]))
        matcher = ShapeMatcher(shape, limit, how).load(decode(encode(matcher.save())))
    return matches


def random_series(seed: int, count: int) -> list[float]:
    """A walk in which stretches are flat, and some values are missing."""
    random = np.random.default_rng(seed)
    values = np.cumsum(random.normal(size=count) * (random.random(count) < 0.8))
    values[random.random(count) < 0.02] = math.nan
    values[random.random(count) < 0.01] = math.inf
    return values.tolist()


@given(
    st.integers(0, 1 << 32),
    st.integers(0, 80),
    SHAPES,
    st.floats(0, 6),
    st.sampled_from(["z", "none"]),
)
@settings(max_examples=150, deadline=None)
def test_matches_are_those_of_brute_force(
    seed: int, count: int, shape: list[float], limit: float, how: str
) -> None:
    values = random_series(seed, count)
    apart = naive.distances(values, shape, how == "z")
    assume(not _nearly_tie([*apart, limit]))  # the two may round differently
    matches = ShapeMatcher(shape, limit, how).add(np.array(values))
    assert [one.start for one in matches] == naive.matches(values, shape, limit, how == "z")
    assert [one.distance for one in matches] == pytest.approx([apart[one.start] for one in matches])
    half = len(shape) // 2
    assert all(one.end == one.start + len(shape) - 1 for one in matches)
    assert all(one.known == one.end + half for one in matches)


def _nearly_tie(apart: list[float]) -> bool:
    ordered = sorted(one for one in apart if math.isfinite(one))
    return any(b - a < 1e-9 for a, b in pairwise(ordered))


@given(
    st.lists(VALUES, max_size=60),
    SHAPES,
    st.floats(0, 5),
    st.sampled_from(["z", "none"]),
    st.lists(st.integers(0, 60), max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_any_cut_gives_the_same_bits(
    values: list[float], shape: list[float], limit: float, how: str, cuts: list[int]
) -> None:
    places = sorted(min(cut, len(values)) for cut in cuts)
    whole = ShapeMatcher(shape, limit, how).add(np.array(values))
    assert in_pieces(values, places, shape, limit, how) == whole


@pytest.mark.parametrize("how", ["z", "none"])
@pytest.mark.parametrize("spike", [0.0, 1e9])
def test_long_series_are_cut_with_the_same_bits(how: str, spike: float) -> None:
    random = np.random.default_rng(7)
    shape = np.sin(np.linspace(0, 7, 64))
    values = np.sin(np.arange(40_000) / 9.0) + random.normal(0, 0.3, 40_000)
    values[20_000] += spike
    values[[3_000, 30_000]] = math.nan
    limit = 8.0 if how == "z" else 7.0
    whole = ShapeMatcher(shape, limit, how).add(values)
    assert len(whole) > 100
    for cuts in ([17], [5_000, 5_001, 23_456], list(range(0, 40_000, 999))):
        assert in_pieces(values.tolist(), cuts, shape.tolist(), limit, how) == whole


def test_candidates_leave_none_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_candidates, "_FEW", 0)
    random = np.random.default_rng(11)
    shape = z_normalized(random.normal(size=33))
    for level, height, limit in ((0, 1, 6.5), (1e7, 1e-3, 6.5), (0, 1e-9, 6.5), (-5e5, 1e8, 6.5)):
        values = level + height * np.cumsum(random.normal(size=30_000))
        values[12_000:12_100] = level
        values[7] *= 1e4
        apart = distances_at(values, np.arange(30_000 - 32), shape, z_distances)
        close = np.flatnonzero(apart <= limit)
        assert len(close) > 100
        assert set(close) <= set(shape_candidates.z_candidates(values, shape, limit))


def test_candidates_are_few_where_few_are_close() -> None:
    random = np.random.default_rng(3)
    values, shape = random.normal(size=50_000), z_normalized(random.normal(size=100))
    candidates = shape_candidates.z_candidates(values, shape, math.sqrt(2 * 100 * 0.65))
    assert 0 < len(candidates) < 100


def test_equal_matches_that_overlap_are_reported_once() -> None:
    series = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    matches = ShapeMatcher([0.0, 1.0, 0.0, 1.0], 0.1).add(series)
    assert [one.start for one in matches] == [0]


def test_of_matches_that_overlap_the_best_is_reported() -> None:
    series = [0.0, 1.0, 2.1, 3.0, 4.0, 5.0, 6.5, 5.0, 3.0, 2.0, 1.0]
    apart = naive.distances(series, [1.0, 2.0, 3.0, 4.0], True)
    best = apart.index(min(apart))
    matches = ShapeMatcher([1.0, 2.0, 3.0, 4.0], 2.0).add(series)
    assert apart[best - 1] < 2.0
    assert apart[best + 1] < 2.0
    assert [one.start for one in matches] == [best]


def test_a_series_shorter_than_the_shape_has_no_match() -> None:
    assert ShapeMatcher([1.0, 2.0, 3.0], 9.0).add([1.0, 2.0]) == []


def test_a_flat_stretch_is_no_match_however_far_the_limit() -> None:
    assert ShapeMatcher([1.0, 2.0, 3.0], 1e9).add([4.0] * 20) == []


def test_state_does_not_grow_with_the_stream() -> None:
    matcher = ShapeMatcher(np.arange(9.0))
    matcher.add(np.random.default_rng(0).normal(size=100))
    early = len(encode(matcher.save()))
    matcher.add(np.random.default_rng(1).normal(size=50_000))
    assert len(encode(matcher.save())) < early + 10


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([1.0, 2.0], "at least 3 points, got 2"),
        ([1.0, math.nan, 2.0], "none of them NULL or NaN"),
        ([2.0, 2.0, 2.0], "values are all equal"),
    ],
)
def test_shapes_that_nothing_could_match(shape: list[float], text: str) -> None:
    with pytest.raises(MiningError, match=text) as raised:
        ShapeMatcher(shape)
    assert raised.value.argument == "shape"


def call(distance: float | None = 0.5, normalize: str = "z") -> CheckedCall:
    return CheckedCall(
        {"value": pa.float64()},
        {"distance": distance, "normalize": normalize},
        tables={"shape": (pa.int64(), pa.float64())},
    )


def shape_table(positions: list[int | None], values: list[float | None]) -> pa.RecordBatch:
    columns = [pa.array(positions, pa.int64()), pa.array(values, pa.float64())]
    return pa.record_batch(columns, names=["c0", "c1"])


def follow(follower: Follower, times: list[int], values: list[float | None]) -> list[tuple]:
    result = follower.follow(np.array(times), {"value": pa.array(values, pa.float64())})
    columns = [column.cast(pa.int64()).to_pylist() for column in result.columns[1:]]
    return list(zip(result.rows.tolist(), *columns, strict=True))


def test_the_function_reports_at_the_row_that_makes_a_match_known() -> None:
    tables = {"shape": shape_table([30, 10, 20], [0.0, 0.0, 1.0])}
    follower = FUNCTION.follower(call(), tables, None)
    assert follow(follower, [1, 2, 3], [7.0, 3.0, 4.0]) == []
    follower = FUNCTION.follower(call(), tables, decode(encode(follower.save())))
    # NULL breaks the series; that the match is the best is known one row later all the same.
    assert follow(follower, [4, 5, 6, 7, 8], [3.0, None, 5.0, 5.0, 9.0]) == [(1, 2, 4)]
    assert follow(follower, [9, 10], [5.0, 4.0]) == [(1, 7, 9)]


def test_the_function_wants_a_shape_in_order() -> None:
    for positions, values, text in (
        ([1, 1, 2], [1.0, 2.0, 3.0], "two points of the shape have the same position"),
        ([1, None, 2], [1.0, 2.0, 3.0], "a point of the shape has no position: it is NULL"),
        ([1, 2, 3], [1.0, None, 3.0], "none of them NULL or NaN"),
        ([], [], "at least 3 points, got 0"),
    ):
        with pytest.raises(MiningError, match=text):
            FUNCTION.follower(call(), {"shape": shape_table(positions, values)}, None)


def test_plain_distances_need_a_limit() -> None:
    with pytest.raises(MiningError, match="MATCHES needs a distance") as raised:
        FUNCTION.results(call(None, "none"))
    assert raised.value.argument == "distance"
    assert [one.name for one in FUNCTION.results(call(None))] == ["distance", "starts", "ends"]
