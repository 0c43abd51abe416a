"""Partial periodic patterns: against all patterns written out, for any split and any parts."""

from __future__ import annotations

import csv
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.mining import saved_state
from nilometer.mining.partial_patterns import PartialPatterns, Pattern
from nilometer.mining.patterns import FUNCTION
from nilometer.mining.symbols import FirstSeen
from nilometer.mining.table_function import CheckedCall, MiningError
from tests.naive_mining_patterns import naive_patterns, naive_segments, naive_support

METER = Path(__file__).parents[3] / "shared" / "data" / "ampds_electricity_b1e.csv"
MINUTE = 60_000_000
OPTIONS = {option.name: option.default for option in FUNCTION.options}
MANY = 10**6

symbols = st.sampled_from(["a", "a", "b", "c", None])
series = st.lists(symbols, max_size=50)
sparse = st.dictionaries(st.integers(0, 60), symbols, max_size=50).map(
    lambda drawn: dict(sorted(drawn.items()))
)
periods = st.integers(1, 4)
shares = st.sampled_from([0.1, 0.3, 0.5, 0.7, 1.0])
wanted = st.sampled_from(["maximal", "closed", "all"])


def texts(values: Any) -> pa.Array:
    return pa.array(list(values), pa.string())


def supports(patterns: list[Pattern]) -> dict[tuple[str | None, ...], int]:
    """The supports of patterns, none of which is there twice."""
    assert len({one.symbols for one in patterns}) == len(patterns)
    assert all(one.complete for one in patterns)
    return {one.symbols: one.support for one in patterns}


def expected(samples: dict[int, Any], period: int, share: float, kind: str) -> dict[Any, int]:
    return naive_patterns(naive_segments(samples, period), ["a", "b", "c"], share, kind)


@given(sparse, periods, shares, wanted, st.lists(st.integers(0, 50), max_size=4))
def test_patterns_are_those_written_out_for_any_split(
    samples: dict[int, str | None], period: int, share: float, kind: str, cuts: list[int]
) -> None:
    mined = PartialPatterns(period, share)
    for begin, end in pairwise([0, *sorted(cuts), len(samples)]):
        part = list(samples.items())[begin:end]
        mined.add_at(np.array([one for one, _ in part]), texts(value for _, value in part))
        mined = PartialPatterns.load(saved_state.decode(saved_state.encode(mined.save())))
    patterns = mined.patterns(kind, most=MANY)
    assert supports(patterns) == expected(samples, period, share, kind)
    assert [one.length for one in patterns] == sorted(
        [one.length for one in patterns], reverse=True
    )
    assert mined.segments == len(naive_segments(samples, period))


@given(series, series, periods, shares, wanted)
def test_parts_are_merged(
    first: list[str | None], second: list[str | None], period: int, share: float, kind: str
) -> None:
    first = first[: len(first) // period * period]
    one, other = PartialPatterns(period, share), PartialPatterns(period, share)
    one.add(texts(first))
    other.add(texts(second))
    one.merge(other)
    one.add(texts(first))
    everything = dict(enumerate(first + second + first))
    assert supports(one.patterns(kind, most=MANY)) == expected(everything, period, share, kind)


@given(series, series, periods, shares, wanted, st.integers(0, 12))
def test_the_first_segments_are_forgotten(
    first: list[str | None],
    second: list[str | None],
    period: int,
    share: float,
    kind: str,
    count: int,
) -> None:
    mined = PartialPatterns(period, share)
    mined.add(texts(first))
    gone = min(count * period, len(first) // period * period)
    mined.forget(texts(first[:gone]))
    mined.add(texts(second))
    rest = dict(enumerate((first + second)[gone:]))
    assert supports(mined.patterns(kind, most=MANY)) == expected(rest, period, share, kind)


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from("aabbcd"), max_size=120),
    periods,
    shares,
    st.integers(1, 5),
    st.lists(st.integers(0, 120), max_size=3),
)
def test_bounded_hits_say_how_much_they_missed(
    values: list[str], period: int, share: float, hits: int, cuts: list[int]
) -> None:
    mined, apart = (PartialPatterns(period, share, hits=hits) for _ in range(2))
    mined.add(texts(values))
    for begin, end in pairwise([0, *sorted(cuts), len(values)]):
        apart.add(texts(values[begin:end]))
    patterns = mined.patterns("all", most=MANY)
    assert apart.patterns("all", most=MANY) == patterns
    assert len(mined._counts.hits) <= hits + max(1, hits // 4)
    segments = naive_segments(dict(enumerate(values)), period)
    for one in patterns:
        true = naive_support(one.symbols, segments)
        assert one.support <= true <= one.support + one.missed
    exact = naive_patterns(segments, list("abcd"), share, "all")
    if mined._counts.exact:
        assert {one.symbols: one.support for one in patterns} == exact


@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_does_not_depend_on_the_split(seed: int) -> None:
    draw = random.Random(seed)
    values = [draw.choice("aaabcd") for _ in range(600)]
    whole, parts = (PartialPatterns(3, 0.2, hits=12) for _ in range(2))
    whole.add(values)
    for begin, end in pairwise([0, *sorted(draw.sample(range(600), 30)), 600]):
        parts.add(texts(values[begin:end]))
        assert len(parts._counts.hits) <= 15
    assert not whole._counts.exact
    assert parts.patterns("all", most=MANY) == whole.patterns("all", most=MANY)


def test_letters_that_are_not_frequent_are_taken_out_first() -> None:
    """Noise at one step makes all segments different; the pattern at the others is exact."""
    draw = np.random.default_rng(2)
    noise = draw.integers(0, 900, 500)
    values = [symbol for one in noise for symbol in ("a", str(one), "b")]
    mined = PartialPatterns(3, 0.9, FirstSeen(1000), hits=20)
    mined.add(values)
    assert [(one.text, one.support, one.missed) for one in mined.patterns()] == [("a * b", 500, 0)]
    assert len(mined._counts.hits) <= 25
    with pytest.raises(MiningError, match="cannot be forgotten where some were lost"):
        mined.forget(values[:3])


def test_merged_parts_keep_to_the_bound() -> None:
    draw = np.random.default_rng(3)
    values = draw.choice(list("abcdefgh"), 4 * 200).tolist()
    parts = [PartialPatterns(4, 0.05, hits=30) for _ in range(2)]
    for part, some in zip(parts, (values[:400], values[400:]), strict=True):
        part.add(some)
    parts[0].merge(parts[1])
    assert len(parts[0]._counts.hits) <= 30
    segments = naive_segments(dict(enumerate(values)), 4)
    for one in parts[0].patterns("all", most=MANY):
        true = naive_support(one.symbols, segments)
        assert one.support <= true <= one.support + one.missed


def test_a_pattern_is_written_short() -> None:
    pattern = Pattern((None,) * 5 + ("a", "b", "b") + (None,) + ("c",) * 4, 3, 0, 4, True)
    assert pattern.text == "*×5 a b b * c×4"
    assert (pattern.length, pattern.confidence) == (7, 0.75)
    unclear = Pattern(("*", "", None, "a b", 'x"', "2×4"), 3, 0, 4, True)
    assert unclear.text == r'''"*" "" * "a b" "x\"" "2×4"'''


def test_much_work_is_cut_short_and_says_so() -> None:
    draw = np.random.default_rng(5)
    values = draw.choice(["a", "b"], 40 * 60).tolist()
    mined = PartialPatterns(40, 0.3)
    mined.add(values)
    segments = naive_segments(dict(enumerate(values)), 40)
    for work, least in ((1e7, 2), (0, 1)):
        patterns = mined.patterns(work=work)
        assert len(patterns) >= least
        assert not any(one.complete for one in patterns)
        assert all(naive_support(one.symbols, segments) == one.support >= 18 for one in patterns)


def test_what_does_not_fit_is_refused() -> None:
    mined = PartialPatterns(3, 0.5)
    mined.add(list("abca"))
    with pytest.raises(MiningError, match="ascend"):
        mined.add_at(np.array([3]), ["a"])
    with pytest.raises(MiningError, match="where a segment ends"):
        mined.merge(PartialPatterns(3, 0.5))
    with pytest.raises(MiningError, match="another period"):
        mined.merge(PartialPatterns(4, 0.5))
    with pytest.raises(MiningError, match="only whole segments") as caught:
        mined.forget(["a"])
    assert caught.value.detail == "got 1 samples, and the period is 3"
    with pytest.raises(MiningError, match="that were added"):
        mined.forget(list("abb"))


def answered(rows: list[tuple[int, Any]], call: CheckedCall, cuts: list[int]) -> Any:
    """The answer after rows that came in parts; the miner is saved and loaded in between."""
    miner = FUNCTION.miner(call, {}, None)
    for begin, end in pairwise([0, *sorted(cuts), len(rows)]):
        times = np.array([time for time, _ in rows[begin:end]], np.int64)
        values = pa.array([value for _, value in rows[begin:end]], call.types["value"])
        miner.add(times, {"value": values})
        if call.window is not None and end > 0:
            miner.forget(rows[end - 1][0] - call.window)
        miner = FUNCTION.miner(call, {}, saved_state.decode(saved_state.encode(miner.save())))
    return miner.answer().to_pylist()


@pytest.mark.parametrize("window", [None, 25, 60])
@pytest.mark.parametrize("step", [None, 1, 3])
@pytest.mark.parametrize("levels", [0, 3])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_independent_of_the_split(
    window: int | None, step: int | None, levels: int, seed: int
) -> None:
    draw = random.Random(seed)
    times = np.cumsum([draw.choice([0, 1, 1, 2]) for _ in range(90)]).tolist()
    values = [draw.choice([*beat, None]) for beat in [[0], [1], [5, 9], [2]] * 22]
    rows = list(zip(times, values, strict=False))
    options = {"period": 4, "confidence": 0.2, "step": step, "levels": levels, "hits": 7}
    options["learn"] = draw.choice([7, 40, 1000])
    call = CheckedCall({"value": pa.int64()}, OPTIONS | options, window)
    whole = answered(rows, call, [])
    cuts = [draw.randrange(len(rows)) for _ in range(draw.choice([1, 5, 60]))]
    assert answered(rows, call, cuts) == whole
    if window is not None:
        inside = [row for row in rows if row[0] >= rows[-1][0] - window]
        assert answered(inside, call, []) == whole


def test_a_share_of_segments_is_not_rounded_up() -> None:
    """0.07 of 100 is 7, though 0.07 * 100 is a bit more."""
    mined = PartialPatterns(1, 0.07)
    mined.add(["a"] * 7 + ["b"] * 93)
    assert 0.07 * 100 > 7
    assert {one.text: one.support for one in mined.patterns()} == {"a": 7, "b": 93}


def test_the_nights_of_a_real_meter_are_a_pattern() -> None:
    if not METER.exists():
        pytest.skip(f"{METER.name} is not there")
    with METER.open() as lines:
        rows = [(int(row["unix_ts"]) * 10**6, float(row["P"])) for row in csv.DictReader(lines)]
    options = {"period": 96, "step": 15 * MINUTE, "breaks": [0.0], "confidence": 0.9, "most": 5}
    best = answered(rows, CheckedCall({"value": pa.float64()}, OPTIONS | options), [])[0]
    assert (best["length"], best["support"], best["segments"]) == (71, 32, 35)
    assert best["complete"]
    assert best["pattern"].startswith("<=0×4 * <=0 <=0 *×13 <=0 * <=0×13")
    last = {time // (15 * MINUTE): "<=0" if power <= 0 else ">0" for time, power in rows}
    days = naive_segments(last, 96)
    assert len(days) == 35
    assert naive_support(tuple(unfolded(best["pattern"])), days) == 32


def unfolded(text: str) -> list[str | None]:
    """The symbols of a pattern's text."""
    words = [word.partition("×") for word in text.split()]
    repeated = [[word] * int(times or 1) for word, _, times in words]
    return [None if word == "*" else word for run in repeated for word in run]


def test_frequent_symbols_are_reported_although_their_segments_were_given_up() -> None:
    dice = np.random.default_rng(1)
    noisy = np.tile(np.arange(24) % 4, 2000)
    noisy = np.where(dice.random(len(noisy)) < 0.2, dice.integers(0, 4, len(noisy)), noisy)
    mined = PartialPatterns(24, 0.8, hits=100)
    mined.add(noisy)
    patterns = mined.patterns()
    assert [one.length for one in patterns] == [1] * 24
    for one in patterns:
        [step] = [place for place, symbol in enumerate(one.symbols) if symbol is not None]
        assert one.support == np.count_nonzero(noisy[step::24] == step % 4)
        assert one.missed == 0


def test_several_periods_are_each_mined_as_if_alone() -> None:
    random_ = random.Random(5)
    samples = [random_.choice("aab") for _ in range(200)]
    call = CheckedCall(
        {"value": pa.string()}, OPTIONS | {"periods": [3.0, 2.0, 7.0], "confidence": 0.5}
    )
    rows = answered_in_parts(samples, call)
    alone = []
    for period in (3, 2, 7):
        mined = PartialPatterns(period, 0.5)
        mined.add(samples)
        alone += [(period, one.text, one.support, one.segments) for one in mined.patterns()]
    together = [(r["period"], r["pattern"], r["support"], r["segments"]) for r in rows]
    assert together == alone
    assert len({row[0] for row in together}) > 1


def answered_in_parts(samples: list[str], call: CheckedCall) -> list[dict[str, Any]]:
    miner = FUNCTION.miner(call, {}, None)
    for first in range(0, len(samples), 30):
        part = samples[first : first + 30]
        miner.add(np.arange(first, first + len(part)), {"value": pa.array(part)})
        miner = FUNCTION.miner(call, {}, saved_state.decode(saved_state.encode(miner.save())))
    return miner.answer().to_pylist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a period, or several, and not both"),
        ({"period": 3, "periods": [3.0]}, "needs a period, or several, and not both"),
        ({"periods": []}, "different whole numbers from 1 to 100000"),
        ({"periods": [2.5]}, "different whole numbers"),
        ({"periods": [2.0, 2.0]}, "different whole numbers"),
        ({"periods": [0.0]}, "different whole numbers"),
    ],
)
def test_what_is_wrong_with_periods_is_reported(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MiningError, match=message):
        FUNCTION.results(CheckedCall({"value": pa.string()}, OPTIONS | options))
