"""Periods of symbols: against all pairs written out, for any split, and on a real meter."""

from __future__ import annotations

import csv
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.mining import saved_state
from nilometer.mining.period_peaks import Period
from nilometer.mining.periodicity import Periodicity
from nilometer.mining.periods import FUNCTION
from nilometer.mining.symbols import FirstSeen, Levels, quantile_breaks
from nilometer.mining.table_function import CheckedCall, MiningError
from nilometer.mining.window_periodicity import WindowPeriodicity
from tests.naive_mining_periods import naive_counts, naive_phase, naive_score

METER = Path(__file__).parents[3] / "shared" / "data" / "ampds_electricity_b1e.csv"
MINUTE = 60_000_000
OPTIONS = {option.name: option.default for option in FUNCTION.options}

symbols = st.sampled_from(["a", "b", "c", None])
series = st.lists(symbols, max_size=60)
sparse = st.dictionaries(st.integers(0, 200), symbols, max_size=40).map(
    lambda drawn: dict(sorted(drawn.items()))
)


def counted(periodicity: Periodicity) -> dict[str, dict[object, int]]:
    """The counts of a Periodicity that are not zero, by symbol and lag."""
    periodicity._convolve()
    pairs, names = periodicity._pairs, periodicity.symbols.names
    tables = {"matches": pairs.matches, "begins": pairs.begins}
    result: dict[str, dict[object, int]] = {
        name: {(names[code], lag): int(table[code, lag]) for code, lag in np.argwhere(table)}
        for name, table in tables.items()
    }
    known = {int(lag): int(pairs.known[lag]) for lag in np.flatnonzero(pairs.known)}
    return result | {"known": known}


def expected(samples: dict[int, str | None], longest: int) -> dict[str, dict[object, int]]:
    counts = naive_counts(samples, longest + 1)  # the lag that shows whether the longest is a peak
    return {name: {key: n for key, n in one.items() if n} for name, one in counts.items()}


def texts(values: list[str | None]) -> pa.Array:
    return pa.array(values, pa.string())


def by_position(values: list[str | None]) -> dict[int, str | None]:
    return dict(enumerate(values))


@given(sparse, st.integers(1, 30), st.lists(st.integers(0, 40), max_size=4))
def test_pairs_are_those_written_out_for_any_split(
    samples: dict[int, str | None], longest: int, cuts: list[int]
) -> None:
    periodicity = Periodicity(longest)
    edges = [0, *sorted(cuts), len(samples)]
    for begin, end in pairwise(edges):
        part = list(samples.items())[begin:end]
        periodicity.add_at(np.array([one for one, _ in part]), texts([value for _, value in part]))
        periodicity = Periodicity.load(saved_state.decode(saved_state.encode(periodicity.save())))
    assert counted(periodicity) == expected(samples, longest)


@given(series, series, st.integers(1, 30))
def test_parts_are_merged(first: list[str | None], second: list[str | None], longest: int) -> None:
    one, other, both = Periodicity(longest), Periodicity(longest), Periodicity(longest)
    one.add(texts(first))
    other.add(texts(second))
    both.add(texts(first + second))
    one.merge(other)
    assert counted(one) == counted(both)
    for periodicity in (one, both):
        periodicity.add(texts(second))
    assert counted(one) == counted(both)
    assert one.periods() == both.periods()


@given(series, series, st.integers(0, 80), st.integers(1, 30))
def test_the_first_samples_are_forgotten(
    first: list[str | None], second: list[str | None], count: int, longest: int
) -> None:
    periodicity = WindowPeriodicity(longest)
    periodicity.add(texts(first))
    periodicity.forget(count)
    periodicity.add(texts(second))
    rest = [(place, value) for place, value in enumerate(first + second)]
    rest = rest[min(count, len(first)) :]
    if count >= len(first):
        rest = list(enumerate(second))
    assert counted(periodicity) == expected(dict(rest), longest)
    anew = WindowPeriodicity(longest, FirstSeen(32, periodicity.symbols.names))
    anew.add_at(np.array([place for place, _ in rest]), texts([value for _, value in rest]))
    assert periodicity.periods(least=0.0) == anew.periods(least=0.0)


@given(sparse, st.integers(1, 30), st.integers(0, 40))
def test_samples_with_gaps_are_forgotten(
    samples: dict[int, str | None], longest: int, count: int
) -> None:
    periodicity = WindowPeriodicity(longest)
    periodicity.add_at(np.array(list(samples)), texts(list(samples.values())))
    periodicity.forget(count)
    assert counted(periodicity) == expected(dict(list(samples.items())[count:]), longest)


def test_large_blocks_and_gaps_are_counted() -> None:
    draw = np.random.default_rng(8)
    places = np.cumsum(draw.choice([1, 1, 1, 1, 1, 1, 9, 10**12], 20_000))
    values = texts(draw.choice(["a", "b"], len(places)).tolist())
    samples = dict(zip(places.tolist(), values.to_pylist(), strict=True))
    periodicity = Periodicity(7)
    periodicity.add_at(places, values)
    assert counted(periodicity) == expected(samples, 7)


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=8, max_size=60), st.data())
def test_what_is_reported_is_what_is_defined(values: list[str | None], data: Any) -> None:
    samples = by_position(values)
    periodicity = WindowPeriodicity(20)
    periodicity.add(texts(values))
    for one in periodicity.periods(most=1000, least=0.0):
        assert 2 <= one.period <= min(20, len(values) // 2)
        assert one.score == pytest.approx(naive_score(samples, one.period, one.symbol))
        assert one.score > 0
        if one.symbol is not None:
            phase = naive_phase(samples, one.period, one.symbol)
            assert (one.phase, one.phase_confidence) == (phase[0], pytest.approx(phase[1]))


@pytest.mark.parametrize("period", [2, 3, 7, 50, 64])
def test_a_hidden_period_is_found_first(period: int) -> None:
    draw = random.Random(period)
    once = [draw.choice("abcd") for _ in range(period - 1)]
    pattern = [*once, "a" if once[-1] != "a" else "b"]
    values = [
        draw.choice("abcd") if draw.random() < 0.2 else one for one in pattern * (1200 // period)
    ]
    periodicity = Periodicity(150)
    periodicity.add(values)
    whole = [one for one in periodicity.periods(most=100) if one.symbol is None]
    assert whole[0].period == period
    repeated = [one for one in whole[1:] if one.period % period == 0]
    assert {one.multiple_of for one in repeated} == {period}
    others = [one for one in whole if one.period % period]
    assert all(2 * one.prominence < whole[0].prominence for one in others)


def test_the_longest_period_is_found_too() -> None:
    periodicity = Periodicity(12)
    periodicity.add(list("abcdefghijkl" * 12))
    assert periodicity.periods()[0].period == 12


def test_noise_has_no_periods() -> None:
    for seed in range(10):
        draw = np.random.default_rng(seed)
        periodicity = Periodicity(400)
        periodicity.add(draw.choice(list("abcd"), 2000).tolist())
        assert periodicity.periods() == []


def test_a_series_of_one_symbol_or_none_has_no_periods() -> None:
    for values in ([], ["a"], ["a"] * 100, [None] * 100):
        periodicity = WindowPeriodicity(10)
        periodicity.add(texts(values))
        assert periodicity.periods() == []


def test_symbols_beyond_those_told_apart_match_nothing() -> None:
    periodicity = Periodicity(10, FirstSeen(2))
    periodicity.add(list("abcabcabcabc" * 5))
    assert periodicity.symbols.names == ["a", "b"]
    best = periodicity.periods()[0]
    assert (best.period, best.symbol, best.confidence) == (3, "a", 1.0)
    whole = [one for one in periodicity.periods() if one.symbol is None and one.period == 3]
    assert whole[0].confidence == pytest.approx(2 / 3)
    with pytest.raises(MiningError, match="more symbols than it distinguishes"):
        Periodicity(10, FirstSeen(5)).merge(periodicity)


def test_what_does_not_fit_is_refused() -> None:
    periodicity = Periodicity(10)
    periodicity.add(["a", "b"])
    with pytest.raises(MiningError, match="ascend"):
        periodicity.add_at(np.array([1]), ["a"])
    with pytest.raises(MiningError, match="other lags"):
        periodicity.merge(Periodicity(11))
    with pytest.raises(MiningError, match="other symbols"):
        periodicity.merge(Periodicity(10, Levels([1])))
    with pytest.raises(MiningError, match="does not keep"):
        WindowPeriodicity(10).merge(periodicity)
    with pytest.raises(MiningError, match="breaks must be ascending numbers"):
        Levels([2, 1])


def mined(
    rows: list[tuple[int, Any]], call: CheckedCall, cuts: list[int], window: int | None
) -> Any:
    """The answer after rows that came in parts; the miner is saved and loaded in between."""
    miner = FUNCTION.miner(call, {}, None)
    edges = [0, *sorted(cuts), len(rows)]
    for begin, end in pairwise(edges):
        part = rows[begin:end]
        times = np.array([time for time, _ in part], np.int64)
        miner.add(times, {"value": pa.array([value for _, value in part], call.types["value"])})
        if window is not None and end > 0:
            miner.forget(rows[end - 1][0] - window)
        miner = FUNCTION.miner(call, {}, saved_state.decode(saved_state.encode(miner.save())))
    return miner.answer().to_pylist()


@pytest.mark.parametrize("window", [None, 25, 60])
@pytest.mark.parametrize("step", [None, 1, 3])
@pytest.mark.parametrize("levels", [None, 0, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_independent_of_the_split(
    window: int | None, step: int | None, levels: int | None, seed: int
) -> None:
    """Levels None: texts."""
    draw = random.Random(seed)
    times = np.cumsum([draw.choice([0, 1, 1, 2]) for _ in range(90)]).tolist()
    numbers = [draw.choice([*beat, None]) for beat in [[0], [1], [5, 9, 7], [2], [0]] * 18]
    options = {"longest": 12, "least": 0.0, "step": step, "levels": levels or 0, "symbols": 3}
    options["learn"] = draw.choice([7, 40, 1000])
    kind, read = (pa.string(), str) if levels is None else (pa.float64(), float)
    call = CheckedCall({"value": kind}, OPTIONS | options, window)
    values = [None if number is None else read(number) for number in numbers]
    rows = list(zip(times, values, strict=True))
    whole = mined(rows, call, [], window)
    cuts = [draw.randrange(len(rows)) for _ in range(draw.choice([1, 5, 60]))]
    assert mined(rows, call, cuts, window) == whole
    if window is not None:
        inside = [row for row in rows if row[0] >= rows[-1][0] - window]
        assert mined(inside, call, [], window) == whole


@given(sparse, st.integers(2, 12), st.sampled_from("abc"))
def test_phases_are_those_written_out(
    samples: dict[int, str | None], period: int, symbol: str
) -> None:
    periodicity = WindowPeriodicity(12, FirstSeen(3, ["a", "b", "c"]))
    periodicity.add_at(np.array(list(samples)), texts(list(samples.values())))
    one = periodicity._with_phase(Period(period, symbol, 0, 0.0, 0.0, 0.0, 0.0))
    assert (one.phase, one.phase_confidence) == naive_phase(samples, period, symbol)


def test_a_phase_is_where_a_symbol_is_most_reliable_not_most_frequent() -> None:
    often = WindowPeriodicity(5)
    often.add_at(np.array([0, 2, 4, 6, 8, 11, 13]), list("aaaxaaa"))
    one = often._with_phase(Period(2, "a", 0, 0.0, 0.0, 0.0, 0.0))
    assert (one.phase, one.phase_confidence) == (1, 1.0)


def test_steps_take_the_last_row_and_leave_gaps() -> None:
    """A row in each step that counts, one before it that does not, and some steps without."""
    rows = []
    for step in range(400):
        if step % 11:
            rows += [(step * 10, "x"), (step * 10 + 5, "a" if step % 7 == 0 else "b")]
    call = CheckedCall({"value": pa.string()}, OPTIONS | {"step": 10, "longest": 50}, 10_000)
    best = mined(rows, call, [], 10_000)[0]
    assert (best["period"], best["seconds"], best["confidence"]) == (7, 70 / 1e6, 1.0)
    phases = {one["symbol"]: one["phase"] for one in mined(rows, call, [], 10_000)}
    assert phases["a"] == 0


def test_only_values_that_can_be_symbols_are_taken() -> None:
    with pytest.raises(MiningError, match="symbols are texts") as caught:
        FUNCTION.results(CheckedCall({"value": pa.list_(pa.float64())}, OPTIONS))
    assert caught.value.argument == "value"
    with pytest.raises(MiningError, match="only numbers are cut") as caught:
        FUNCTION.results(CheckedCall({"value": pa.string()}, OPTIONS | {"breaks": [1.0]}))
    assert caught.value.argument == "breaks"


def test_the_state_does_not_grow() -> None:
    call = CheckedCall({"value": pa.float64()}, OPTIONS | {"longest": 50, "learn": 10})
    miner = FUNCTION.miner(call, {}, None)
    draw = np.random.default_rng(1)
    sizes = []
    for block in range(40):
        times = np.arange(block * 500, (block + 1) * 500)
        miner.add(times, {"value": pa.array(draw.normal(size=500))})
        sizes.append(len(saved_state.encode(miner.save())))
    assert max(sizes[5:]) - min(sizes[5:]) < 64


@pytest.fixture(scope="module")
def meter() -> tuple[Any, Any]:
    """The times and the power of a real meter, once a minute over five weeks."""
    if not METER.exists():
        pytest.skip(f"{METER.name} is not there")
    with METER.open() as lines:
        rows = list(csv.DictReader(lines))
    times = np.array([int(row["unix_ts"]) for row in rows]) * 1_000_000
    return times, np.array([float(row["P"]) for row in rows])


def test_the_day_is_the_best_period_of_a_real_meter(meter: tuple[Any, Any]) -> None:
    _, power = meter
    periodicity = Periodicity(10_080, Levels(quantile_breaks(power[:1000], 4)))
    for part in np.array_split(power, 7):
        periodicity.add(part)
    periods = periodicity.periods()
    assert [one.period for one in periods[:3]] == [1440, 1440, 1440]
    whole = [one for one in periods if one.symbol is None]
    assert whole[0] == Period(
        period=1440,
        symbol=None,
        matches=46507,
        confidence=pytest.approx(0.93444, abs=1e-5),
        chance=pytest.approx(0.89284, abs=1e-5),
        score=pytest.approx(0.38817, abs=1e-5),
        prominence=pytest.approx(0.44676, abs=1e-5),
    )
    days = [one for one in whole[1:] if abs(one.period - 1440 * round(one.period / 1440)) < 30]
    assert len(days) >= 3
    assert {one.multiple_of for one in days} == {1440}


@pytest.mark.parametrize("start", [0, 17_000, 34_000])
def test_the_day_is_settled_by_several_days(start: int) -> None:
    """The highest score of these eleven days is at 1429 to 1463 minutes."""
    if not METER.exists():
        pytest.skip(f"{METER.name} is not there")
    with METER.open() as lines:
        rows = list(csv.DictReader(lines))[start : start + 17_000]
    for column in ("V", "I", "P", "S"):
        values = np.array([float(row[column]) for row in rows])
        periodicity = Periodicity(10_080, Levels(np.unique(np.quantile(values, [0.25, 0.5, 0.75]))))
        periodicity.add(values)
        best = next(one for one in periodicity.periods() if one.symbol is None)
        assert abs(best.period - 1440) <= 4, column


@pytest.mark.parametrize("seed", range(5))
def test_what_is_done_at_about_the_same_time_has_the_period_of_the_day(seed: int) -> None:
    draw = np.random.default_rng(seed)
    day, days = 300, 40
    values = np.zeros(day * days)
    for number in range(days):
        begin = round(number * day + 120 + draw.normal(0, 8))
        values[begin : begin + 60] = 1
    periodicity = Periodicity(5 * day + 20, Levels([0.5]))
    periodicity.add(values)
    best = next(one for one in periodicity.periods() if one.symbol is None)
    assert abs(best.period - day) <= 1


def test_the_day_is_found_by_the_function(meter: tuple[Any, Any]) -> None:
    times, power = meter
    week = 7 * 1440 * MINUTE
    for window, options in ((None, {}), (None, {"step": MINUTE}), (2 * week, {"step": MINUTE})):
        call = CheckedCall({"value": pa.float64()}, OPTIONS | options, window)
        rows = list(zip(times.tolist(), power.tolist(), strict=True))
        answer = mined(rows, call, [], window)
        assert answer[0]["period"] == pytest.approx(1440, rel=0.01)
        assert json.dumps(answer)
