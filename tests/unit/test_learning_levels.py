"""Levels are learnt from the first samples: what is held meanwhile is bounded."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nilometer.mining import symbol_miner
from nilometer.mining.registry import find_function
from nilometer.mining.saved_state import decode, encode
from nilometer.mining.table_function import CheckedCall

LEARN = 10
UNKNOWN = 40
FUNCTION: Any = find_function("PERIODS")


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbol_miner, "_MOST_UNKNOWN", UNKNOWN)


def call(step: int | None) -> CheckedCall:
    options = {one.name: one.default for one in FUNCTION.options}
    return CheckedCall(
        {"value": pa.float64()}, options | {"learn": LEARN, "step": step, "longest": 20}
    )


def mined(values: np.ndarray, step: int | None, sizes: list[int]) -> tuple[Any, int]:
    """The answer to values that come in parts of these sizes, and the most samples held."""
    miner, begin, largest = FUNCTION.miner(call(step), {}, None), 0, 0
    for size in sizes:
        part = values[begin : begin + size]
        miner.add(np.arange(begin, begin + len(part)) * 10, {"value": pa.array(part)})
        saved = miner.save()
        largest = max(largest, len(saved["held.times"]))
        miner = FUNCTION.miner(call(step), {}, decode(encode(saved)))
        begin += size
    return miner.answer().to_pylist(), largest


def series(known: float, seed: int) -> np.ndarray:
    """Long silence, then a period of four of which some samples are known."""
    dice = np.random.default_rng(seed)
    values = np.where(dice.random(1200) < known, np.arange(1200) % 4, np.nan)
    values[:500] = np.nan
    return values


@pytest.mark.one_of(3)
@pytest.mark.parametrize("step", [None, 10])
@pytest.mark.parametrize("known", [0.0, pytest.param(0.05, marks=pytest.mark.soak), 0.8])
def test_what_is_held_is_bounded_and_cuts_do_not_matter(known: float, step: int | None) -> None:
    values = series(known, seed=3)
    answer, largest = mined(values, step, [1] * len(values))
    assert largest <= LEARN + UNKNOWN + 1
    dice = random.Random(5)
    for _ in range(3):
        sizes = dice.choices([1, 7, 60, 300], k=400)
        assert mined(values, step, sizes)[0] == answer
    assert mined(values, step, [len(values)])[0] == answer
    assert bool(answer) == (known > 0.5)


def test_a_long_silence_does_not_hide_what_follows() -> None:
    answer, _ = mined(series(0.8, seed=4), None, [100] * 12)
    assert answer[0]["period"] == 4
