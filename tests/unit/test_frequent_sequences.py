"""Frequent subsequences: against brute force, for any split, any window and any restart."""

from __future__ import annotations

import csv
import itertools
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.mining.frequent_sequences import FrequentSequences
from nilometer.mining.occurrences import SequenceShape, SymbolRows
from nilometer.mining.registry import find_function
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.sequence_counts import SequenceCounts
from nilometer.mining.sequences import FUNCTION
from nilometer.mining.symbol_texts import symbol_texts
from nilometer.mining.table_function import CheckedCall, MiningError
from tests import naive_mining_sequences as naive

DATA = Path(__file__).parents[3] / "shared" / "data"

DEFAULTS = {option.name: option.default for option in FUNCTION.options}
Event = naive.Event

events = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.sampled_from("abc")), max_size=14
).map(lambda rows: [(sum(r[0] for r in rows[: i + 1]), *r[1:]) for i, r in enumerate(rows)])
shapes = st.fixed_dictionaries(
    {
        "shortest": st.integers(1, 2),
        "longest": st.integers(2, 4),
        "gap": st.integers(0, 2),
        "span": st.none() | st.integers(0, 8),
    }
)
demands = st.fixed_dictionaries(
    {"across": st.sampled_from([0.0, 0.5, 1.0]), "support": st.integers(1, 2)}
)


def add(sequences: FrequentSequences, rows: Sequence[Event]) -> None:
    sequences.add([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def counts_of(sequences: FrequentSequences) -> dict[tuple[str, ...], tuple[int, int, int]]:
    return {one.sequence: (one.streams, one.support, one.occurrences) for one in sequences.answer()}


@given(events, shapes, demands, st.lists(st.integers(0, 14)), st.booleans())
def test_counts_are_those_of_brute_force_for_any_split_and_restart(
    rows: list[Event],
    shape: dict[str, Any],
    demand: dict[str, Any],
    cuts: list[int],
    window: bool,
) -> None:
    counters = None if window else 10_000
    sequences = FrequentSequences(**shape, **demand, counters=counters)
    borders = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    for begin, end in itertools.pairwise(borders):
        add(sequences, rows[begin:end])
        saved = decode(encode(sequences.save()))
        sequences = FrequentSequences(**shape, **demand, counters=counters)
        sequences.load(saved)
    assert counts_of(sequences) == naive.frequent(rows, **shape, **demand)
    assert all(one.error == 0 for one in sequences.answer())


@given(events, shapes, st.lists(st.tuples(st.integers(0, 14), st.integers(0, 20)), max_size=4))
def test_rows_that_leave_take_their_occurrences_with_them(
    rows: list[Event], shape: dict[str, Any], steps: list[tuple[int, int]]
) -> None:
    sequences = FrequentSequences(**shape, counters=None)
    begin, horizon = 0, 0
    for end, before in [*sorted(steps), (len(rows), 3)]:
        add(sequences, rows[begin:end])
        begin, horizon = max(begin, min(end, len(rows))), max(horizon, before)
        sequences.forget(horizon)
        inside = [row for row in rows[:begin] if row[0] >= horizon]
        assert counts_of(sequences) == naive.frequent(inside, **shape, across=1.0, support=1)


@given(events, shapes, st.integers(0, 14), st.integers(0, 14), st.booleans())
def test_merged_parts_are_the_whole(
    rows: list[Event], shape: dict[str, Any], first: int, second: int, window: bool
) -> None:
    first, second = sorted((first, second))
    whole, *later = (
        FrequentSequences(**shape, counters=None if window else 10_000) for _ in range(3)
    )
    for part, some in zip(
        [whole, *later], [rows[:first], rows[first:second], rows[second:]], strict=True
    ):
        add(part, some)
    later[0].merge(later[1])
    whole.merge(later[0])
    assert counts_of(whole) == naive.frequent(rows, **shape, across=1.0, support=1)
    add(whole, [(99, "x", "a"), (99, "y", "b")])
    longer = [*rows, (99, "x", "a"), (99, "y", "b")]
    assert counts_of(whole) == naive.frequent(longer, **shape, across=1.0, support=1)


def _long_stream(number: int) -> list[Event]:
    """A few sequences over and over, among symbols that hardly come twice."""
    chance = random.Random(number)
    symbols: list[str] = []
    while len(symbols) < 4000:
        symbols += "abcd" if chance.random() < 0.2 else [str(chance.randrange(2000))]
    return [(place, f"s{place % 2}", symbol) for place, symbol in enumerate(symbols)]


@pytest.mark.parametrize("gap", [0, 1])
@pytest.mark.parametrize("counters", [40, 400])
def test_with_few_counters_counts_are_within_the_error_and_memory_is_bounded(
    gap: int, counters: int
) -> None:
    rows = _long_stream(counters)
    sequences = FrequentSequences(longest=3, gap=gap, across=0, counters=counters)
    sizes = []
    for begin in range(0, len(rows), 500):
        add(sequences, rows[begin : begin + 500])
        sizes.append(len(encode(sequences.save())))
    exact = {
        stream: naive.short_occurrences([s for _, name, s in rows if name == stream], gap)
        for stream in ("s0", "s1")
    }
    by_sequence = {one.sequence: one for one in sequences.answer()}
    error = max(one.error for one in by_sequence.values())
    assert 0 < error <= max(sum(counts.values()) for counts in exact.values()) / counters
    for sequence, one in by_sequence.items():
        true = [counts[sequence] for counts in exact.values()]
        assert sum(true) - 2 * error <= one.occurrences <= sum(true)
    frequent = {s for counts in exact.values() for s, n in counts.items() if n > error}
    assert frequent <= set(by_sequence)
    assert max(sizes) < 2 * max(sizes[0], 60 * counters)


def test_too_many_counters_lose_what_the_first_one_too_many_has() -> None:
    counts = SequenceCounts(SequenceShape(1, 1), counters=2)
    counts.add(SymbolRows(list("aabbcd"), np.arange(6)))
    assert (counts.counts, counts.error) == ({("a",): 1, ("b",): 1}, 1)
    later = SequenceCounts(SequenceShape(1, 1), counters=2)
    later.add(SymbolRows(list("efeeff"), np.arange(6)))
    assert (later.counts, later.error) == ({("e",): 3, ("f",): 3}, 0)
    later.merge(counts)
    assert (later.counts, later.error) == ({("e",): 2, ("f",): 2}, 2)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 600), max_size=6), st.integers(0, 1))
def test_dropping_counters_does_not_depend_on_the_split(cuts: list[int], gap: int) -> None:
    rows = _long_stream(7)[:600]
    whole = FrequentSequences(longest=3, gap=gap, across=0, counters=30)
    add(whole, rows)
    cut = FrequentSequences(longest=3, gap=gap, across=0, counters=30)
    borders = sorted({0, *cuts, len(rows)})
    for begin, end in itertools.pairwise(borders):
        add(cut, rows[begin:end])
    assert cut.answer() == whole.answer()
    assert len(encode(cut.save())) == len(encode(whole.save()))
    assert whole.answer()[0].error > 0


def test_the_best_come_first_and_no_more_than_asked_for() -> None:
    sequences = FrequentSequences(longest=3, across=0.5)
    add(sequences, [(i, stream, s) for i, s in enumerate("abcabcab") for stream in "xy"])
    add(sequences, [(9, "x", "q")])
    best = sequences.answer(4)
    assert [one.sequence for one in best] == [
        ("a", "b"),
        ("a", "b", "c"),
        ("b", "c", "a"),
        ("c", "a", "b"),
    ]
    assert [(one.streams, one.support, one.occurrences) for one in best[:2]] == [
        (2, 3, 6),
        (2, 2, 4),
    ]


def _miner(window: int | None = None, saved: Any = None, **options: Any) -> Any:
    call = CheckedCall({"stream": pa.string(), "value": pa.int64()}, DEFAULTS | options, window)
    assert [column.name for column in FUNCTION.results(call)] == NAMES
    return FUNCTION.miner(call, {}, saved)


NAMES = ["sequence", "streams", "support", "occurrences", "error"]


def test_the_table_function_takes_any_values_and_leaves_null_out() -> None:
    assert find_function("SEQUENCES") is FUNCTION
    miner = _miner(window=10, most=1)
    columns = {
        "stream": pa.array(["x", "x", None, "x", "y", "y"]),
        "value": pa.array([1, None, 7, 2, 1, 2]),
    }
    miner.add(pa.array([0, 1, 1, 2, 2, 3]).to_numpy(), columns)
    miner = _miner(window=10, most=1, saved=decode(encode(miner.save())))
    row = dict(zip(NAMES, (["1", "2"], 2, 1, 2, 0), strict=True))
    assert miner.answer().to_pylist() == [row]
    miner.forget(1)
    assert miner.answer().to_pylist() == []
    miner.forget(3)
    assert miner.answer().num_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shortest": 6}, "the shortest sequence is longer than the longest"),
        ({"gap": 9, "longest": 6}, "too many sequences could end in one row"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MiningError, match=message) as refused:
        _miner(**options)
    assert refused.value.argument in options


def test_misuse_is_refused() -> None:
    sequences = FrequentSequences()
    add(sequences, [(5, "x", "a")])
    with pytest.raises(MiningError, match="order of time"):
        add(sequences, [(4, "x", "b")])
    with pytest.raises(MiningError, match="forgotten only where they are kept"):
        sequences.forget(3)
    with pytest.raises(MiningError, match="counted in the same way"):
        sequences.merge(FrequentSequences(gap=1))


def test_texts_of_values_of_all_kinds() -> None:
    assert symbol_texts(pa.array(["é", None])) == ["é", None]
    assert symbol_texts(pa.array([[1.5, None], None])) == ["[1.5, null]", None]
    assert symbol_texts(pa.array([datetime(2020, 1, 2)])) == ["2020-01-02T00:00:00.000000"]
    assert len(set(symbol_texts(pa.array([float("nan"), -float("nan"), 0.0, -0.0])))) == 2


def test_rooms_that_are_entered_one_after_the_other_on_most_days() -> None:
    path = DATA / "mavlab_2003_april.csv"
    if not path.exists():
        pytest.skip("the captures are not beside the project")
    rows = _entered_rooms(path)
    days = {day for _, day, _ in rows}
    sequences = FrequentSequences(longest=3, across=0.5, gap=1)
    add(sequences, rows)
    counts = [naive.short_occurrences([r for _, d, r in rows if d == day], 1) for day in days]
    expected = Counter(sequence for one in counts for sequence in one)
    streams = {sequence: n for sequence, n in expected.items() if n >= len(days) / 2}
    assert {one.sequence: one.streams for one in sequences.answer()} == streams
    assert len(streams) > 10
    for one in sequences.answer():
        assert one.occurrences == sum(counts_of_day[one.sequence] for counts_of_day in counts)


def test_one_way_through_three_rooms_is_taken_in_ten_minutes_on_most_days() -> None:
    path = DATA / "mavlab_2003_april.csv"
    if not path.exists():
        pytest.skip("the captures are not beside the project")
    sequences = FrequentSequences(shortest=3, across=0.5, span=10 * 60 * 1_000_000)
    add(sequences, _entered_rooms(path))
    assert [(one.sequence, one.streams, one.occurrences) for one in sequences.answer()] == [
        (("Studio C", "Studio B", "Studio A"), 10, 10)
    ]


def _entered_rooms(path: Path) -> list[Event]:
    """Of each day the rooms in which something happens, without repetition."""
    rows: list[Event] = []
    with path.open() as lines:
        for line in csv.DictReader(lines):
            text = f"{line['Date']} {line['Time AM/PM']}"
            when = datetime.strptime(text, "%m/%d/%Y %I:%M:%S %p").replace(tzinfo=UTC)
            if line["Location"]:
                rows.append((int(when.timestamp()) * 1_000_000, line["Date"], line["Location"]))
    rows.sort(key=lambda row: row[0])
    last: dict[str, str] = {}
    entered = []
    for row in rows:
        if last.get(row[1]) != row[2]:
            entered.append(row)
        last[row[1]] = row[2]
    return entered
