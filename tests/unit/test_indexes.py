"""Indexes: candidates hold every match, also where hashes and times are cut short."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.indexes import NoIndex, Probes, Runs, TimeIndex, order_by_key_and_time
from nilometer.kernels.key_hashes import mix

TIMES = st.one_of(st.integers(-20, 20), st.integers(-(2**55), 2**55))


@st.composite
def questions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Probes]:
    rows = draw(st.lists(st.tuples(st.integers(0, 4), TIMES), min_size=1, max_size=40))
    asked = draw(
        st.lists(st.tuples(st.integers(0, 5), TIMES, st.integers(0, 30)), min_size=1, max_size=20)
    )
    keys, times = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    probed, lows, lengths = (np.array(c, dtype=np.int64) for c in zip(*asked, strict=True))
    return mix(keys), times, Probes(mix(probed), lows, lows + lengths)


def pairs_of(runs: Runs) -> set[tuple[int, int]]:
    return set(zip(*(column.tolist() for column in runs.expand()), strict=True))


def matches(hashes: np.ndarray, times: np.ndarray, probes: Probes) -> set[tuple[int, int]]:
    return {
        (p, r)
        for p in range(len(probes))
        for r in range(len(times))
        if probes.hashes[p] == hashes[r] and probes.lows[p] <= times[r] <= probes.highs[p]
    }


@settings(max_examples=500)
@given(questions())
def test_no_match_escapes_the_hash_index(asked: tuple[np.ndarray, np.ndarray, Probes]) -> None:
    hashes, times, probes = asked
    index, order = order_by_key_and_time(hashes, times)
    wanted = matches(hashes[order], times[order], probes)
    assert wanted <= pairs_of(index.find(probes))
    everything = np.arange(len(probes))
    assert wanted <= pairs_of(index._search(everything, probes))
    assert wanted <= pairs_of(index._look_up(np.ones(len(probes), np.bool_), probes.hashes))


@given(questions())
def test_the_time_index_finds_exactly_the_period(
    asked: tuple[np.ndarray, np.ndarray, Probes],
) -> None:
    _, times, probes = asked
    times = np.sort(times)
    inside = {
        (p, r)
        for p in range(len(probes))
        for r in range(len(times))
        if probes.lows[p] <= times[r] <= probes.highs[p]
    }
    assert pairs_of(TimeIndex(times).find(probes)) == inside


@pytest.mark.parametrize("time_bits", [40, 56])
def test_slots_hold_hashes_only_however_long_the_chunk(
    time_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many rows over a long time the slots would reach into the bits of the times."""
    monkeypatch.setattr("nilometer.kernels.indexes._MOST_TIME_BITS", time_bits)
    monkeypatch.setattr("nilometer.kernels.indexes._SLOTS_PER_ROW", 1 << 24)
    keys = np.arange(50, dtype=np.int64)
    times = np.linspace(0, 2**57, 50).astype(np.int64)
    index, order = order_by_key_and_time(mix(keys), times)
    probes = Probes(mix(keys), times, times)
    wanted = matches(mix(keys)[order], times[order], probes)
    assert wanted <= pairs_of(index._look_up(np.ones(50, np.bool_), probes.hashes))


def test_without_an_index_every_row_is_a_candidate() -> None:
    probes = Probes(mix(np.arange(2)), np.zeros(2, np.int64), np.zeros(2, np.int64))
    assert pairs_of(NoIndex(3).find(probes)) == {(p, r) for p in range(2) for r in range(3)}


def test_a_hot_key_costs_its_window_not_its_history() -> None:
    times = np.arange(100_000, dtype=np.int64)
    hashes = mix(np.zeros(100_000, dtype=np.int64))
    index, _ = order_by_key_and_time(hashes, times)
    lows = np.array([50_000], dtype=np.int64)
    assert index.find(Probes(hashes[:1], lows, lows + 99)).total == pytest.approx(100, abs=2)


def test_runs_can_be_cut_by_probes() -> None:
    runs = Runs(np.array([0, 2, 3]), np.array([5, 7, 0]), np.array([2, 1, 3]))
    assert pairs_of(runs.between(1, 3)) == {(2, 7)}
