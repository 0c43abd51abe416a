"""The miner for functions over a series of symbols: it turns rows into samples, then symbols."""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.mining.samples import Samples
from nilometer.mining.symbols import (
    Alphabet,
    FirstSeen,
    Levels,
    as_texts,
    check_symbols,
    is_levelled,
    quantile_breaks,
)
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    MiningError,
    OptionArgument,
    OptionKind,
    Saved,
    Takes,
)
from nilometer.mining.vectors import as_numbers

_MOST_UNKNOWN: Final = 100_000
"""While levels are learned all samples are held, but not for ever: a sensor may be broken."""
VALUE: Final = ColumnArgument(
    "value", Takes.ANY, "the values whose symbols make the series: numbers are cut into levels"
)
OPTIONS: Final = (
    OptionArgument(
        "step",
        OptionKind.DURATION,
        "how far apart samples are: the last row of each step since 1970 is a sample, and steps "
        "without rows match nothing; without it every row is a sample",
        minimum=1,
    ),
    OptionArgument(
        "breaks",
        OptionKind.NUMBERS,
        "numbers that cut the values into levels; a value that is a break belongs below it",
    ),
    OptionArgument(
        "levels",
        OptionKind.INTEGER,
        "into how many levels numbers are cut, each with the same share of the window or else of "
        "the first samples (learn); 0: every number is a symbol",
        default=4,
        minimum=0,
        maximum=64,
    ),
    OptionArgument(
        "learn",
        OptionKind.INTEGER,
        "from how many known samples the levels are learnt where there is no window",
        default=1000,
        minimum=1,
        maximum=100_000,
    ),
    OptionArgument(
        "symbols",
        OptionKind.INTEGER,
        "how many symbols are distinguished: the first ones that occur; others match nothing",
        default=32,
        minimum=1,
        maximum=1000,
    ),
)


class Series(Protocol):
    """A series that is mined as samples are added."""

    def add_at(self, positions: Int64s, values: Any) -> None:
        """Add the next samples, given with their positions."""

    def save(self) -> Saved:
        """Its state."""


Mined = TypeVar("Mined", bound=Series)


class SeriesFunction(Protocol[Mined]):
    """What differs between functions."""

    def start(self, call: CheckedCall, symbols: Alphabet) -> Mined:
        """A series without samples."""

    def load(self, saved: Saved) -> Mined:
        """Restore from a saved state, which can be reused."""

    def report(self, call: CheckedCall, mined: Mined) -> pa.RecordBatch:
        """The rows of an answer."""


class SymbolMiner(Generic[Mined]):
    """Mines the rows of one key: with a window afresh for each answer, else as they arrive."""

    def __init__(
        self, function: SeriesFunction[Mined], call: CheckedCall, saved: Saved | None
    ) -> None:
        self._function, self._call = function, call
        self._levelled = uses_levels(call)
        self._held = Samples.none(pa.float64() if self._levelled else pa.string())
        self._rows = 0
        self._mined: Mined | None = None
        if saved is not None:
            self._held = Samples.load(_of(saved, "held"))
            self._rows = saved["rows"]
            self._mined = function.load(_of(saved, "mined")) if saved["started"] else None

    def add(self, times: Int64s, columns: Columns) -> None:
        """Add the next rows."""
        self._held = self._held.then(self._samples(times, columns["value"]))
        if self._call.window is None:
            self._mine()

    def forget(self, before: int) -> None:
        """Remove the rows before a time."""
        self._held = self._held.part(int(np.searchsorted(self._held.times, before)))

    def answer(self) -> pa.RecordBatch:
        """The answer for all samples, including one that a later row may still replace."""
        mined = self._mined
        if mined is None:
            mined = self._function.start(self._call, self._alphabet(self._held))
        elif len(self._held):
            mined = self._function.load(mined.save())
        positions = self._held.positions
        if self._call.window is not None and self._step is None:
            positions = positions - positions[:1]
        mined.add_at(positions, self._held.values)
        return self._function.report(self._call, mined)

    def save(self) -> Saved:
        """The samples that are held, and the state of the series."""
        saved: Saved = {"rows": self._rows, "started": self._mined is not None}
        saved |= {f"held.{name}": value for name, value in self._held.save().items()}
        if self._mined is not None:
            saved |= {f"mined.{name}": value for name, value in self._mined.save().items()}
        return saved

    @property
    def _step(self) -> int | None:
        step: int | None = self._call.options["step"]
        return step

    def _samples(self, times: Int64s, column: pa.Array) -> Samples:
        values = pa.array(as_numbers(column)) if self._levelled else as_texts(column)
        if self._step is not None:
            return Samples(times // self._step, times, values)
        positions = np.arange(self._rows, self._rows + len(times))
        self._rows += len(times)
        return Samples(positions, times, values)

    def _mine(self) -> None:
        """Mine the samples that no later row can replace, once the levels are known."""
        self._drop_unknown()
        final = self._final
        samples = self._held.part(0, final)
        if self._mined is None:
            first = samples.part(0, min(final, self._patience))
            waits = self._learns() and _known(first) < self._call.options["learn"]
            if not final or (waits and final < self._patience):
                return
            self._mined = self._function.start(self._call, self._alphabet(first))
        self._mined.add_at(samples.positions, samples.values)
        self._held = self._held.part(final)

    def _drop_unknown(self) -> None:
        """Drop a very long unknown beginning: the series starts after it."""
        while self._mined is None and self._learns() and self._final >= self._patience:
            if _known(self._held.part(0, self._patience)):
                return
            self._held = self._held.part(self._patience)

    @property
    def _final(self) -> int:
        """How many of the held samples no later row can replace."""
        return max(len(self._held) - (self._step is not None), 0)

    @property
    def _patience(self) -> int:
        """Levels are learned from at most so many samples, however few of them are known."""
        return int(self._call.options["learn"]) + _MOST_UNKNOWN

    def _learns(self) -> bool:
        return self._levelled and self._call.options["breaks"] is None

    def _alphabet(self, samples: Samples) -> Alphabet:
        options = self._call.options
        if not self._levelled:
            return FirstSeen(options["symbols"])
        if not self._learns():
            return Levels(options["breaks"])
        numbers = as_numbers(samples.values)
        known = numbers[np.isfinite(numbers)]
        if self._call.window is None:
            known = known[: options["learn"]]
        return Levels(quantile_breaks(known, options["levels"]))


def uses_levels(call: CheckedCall) -> bool:
    """Whether values are divided into levels."""
    has_levels = call.options["breaks"] is not None or call.options["levels"] > 0
    return is_levelled(call.types["value"]) and has_levels


def check_series(call: CheckedCall) -> None:
    """Check that the values can be symbols, and that only numbers have breaks."""
    check_symbols(call.types["value"])
    breaks = call.options["breaks"]
    if breaks is None:
        return
    Levels(breaks)
    if not is_levelled(call.types["value"]):
        raise MiningError(
            "only numbers are cut by breaks",
            detail=f"got {call.types['value']}",
            argument="breaks",
        )


def _known(samples: Samples) -> int:
    return int(np.isfinite(as_numbers(samples.values)).sum())


def _of(saved: Saved, part: str) -> Saved:
    begin = f"{part}."
    return {name.removeprefix(begin): one for name, one in saved.items() if name.startswith(begin)}
