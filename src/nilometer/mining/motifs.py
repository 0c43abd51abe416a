"""MOTIFS: what repeats in a window of a stream, and what is unlike everything else in it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.mining.motif_finder import MotifFinder
from nilometer.mining.subsequences import SHORTEST
from nilometer.mining.table_function import (
    AnswerFunction,
    CheckedCall,
    ColumnArgument,
    Columns,
    Miner,
    MiningError,
    OptionArgument,
    OptionKind,
    ResultColumn,
    Saved,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
)
from nilometer.mining.vectors import as_numbers

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_RESULTS: Final = (
    ResultColumn("kind", pa.string()),
    ResultColumn("number", pa.int64()),
    ResultColumn("starts", _TIMESTAMP),
    ResultColumn("nearest", _TIMESTAMP),
    ResultColumn("distance", pa.float64()),
    ResultColumn("occurrences", pa.int64()),
)


class Motifs:
    """The table function: the motifs and discords among the rows of a window."""

    name = "MOTIFS"
    about = "what repeats itself in a window of a stream, and what is like nothing else in it"
    columns = (
        ColumnArgument("value", Takes.NUMBER, "what is compared; NULL and NaN break the series"),
    )
    options = (
        OptionArgument(
            "length",
            OptionKind.INTEGER,
            "of a motif and of a discord, in rows",
            required=True,
            minimum=SHORTEST,
        ),
        OptionArgument(
            "motifs",
            OptionKind.INTEGER,
            "how many motifs at most",
            default=3,
            minimum=0,
            maximum=1000,
        ),
        OptionArgument(
            "discords",
            OptionKind.INTEGER,
            "how many discords at most",
            default=1,
            minimum=0,
            maximum=1000,
        ),
        OptionArgument(
            "radius",
            OptionKind.NUMBER,
            "the largest distance of an occurrence; by default that of a correlation of 0.9",
            minimum=0.0,
        ),
        OptionArgument(
            "rows",
            OptionKind.INTEGER,
            "how many of the last rows are searched; by default all in the window",
            minimum=2 * SHORTEST,
            maximum=100_000,
        ),
    )
    tables: tuple[TableArgument, ...] = ()
    window = WindowUse.ALLOWED
    needs = ("threadpoolctl",)

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """The same for every call."""
        rows, length = call.options["rows"], call.options["length"]
        if rows is None and call.window is None:
            raise MiningError(
                "MOTIFS needs a window, or the number of rows to search",
                hint="write a window after the stream, or rows => 10000",
                argument="rows",
            )
        if rows is not None and rows < 2 * length:
            raise MiningError(
                f"two motifs of {length} rows do not fit into {rows} rows",
                hint=f"write rows => {2 * length} or more",
                argument="rows",
            )
        return _RESULTS

    def miner(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> Miner:
        """The miner of one key."""
        options = call.options
        finder = MotifFinder(
            options["length"], options["motifs"], options["discords"], options["radius"]
        )
        if saved is None:
            return MotifMiner(finder, np.empty(0, dtype=np.int64), options["rows"])
        finder.add(saved["values"])
        return MotifMiner(finder, saved["times"], options["rows"])


class MotifMiner:
    """Holds the rows of one window."""

    def __init__(self, finder: MotifFinder, times: Int64s, rows: int | None) -> None:
        self._finder = finder
        self._times = times
        self._rows = rows

    def add(self, times: Int64s, columns: Columns) -> None:
        """Add the next rows; if their number is limited, the oldest leave."""
        self._finder.add(as_numbers(columns["value"]))
        self._times = np.concatenate([self._times, times])
        if self._rows is not None:
            self._drop(max(0, len(self._times) - self._rows))

    def forget(self, before: int) -> None:
        """Remove the rows strictly before a time from the window."""
        self._drop(int(np.searchsorted(self._times, before)))

    def _drop(self, count: int) -> None:
        self._finder.forget(count)
        self._times = self._times[count:].copy()

    def answer(self) -> pa.RecordBatch:
        """Motifs, the best first, then discords."""
        findings = self._finder.answer()
        starts, nearest = (
            pa.array(self._times[places]).cast(_TIMESTAMP)
            for places in (
                np.array([one.start for one in findings], dtype=np.int64) - self._finder.forgotten,
                np.array([one.nearest for one in findings], dtype=np.int64)
                - self._finder.forgotten,
            )
        )
        columns = [
            pa.array([one.kind.value for one in findings], pa.string()),
            pa.array([one.number for one in findings], pa.int64()),
            starts,
            nearest,
            pa.array([one.distance for one in findings], pa.float64()),
            pa.array([len(one.occurrences) for one in findings], pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(columns, [one.name for one in _RESULTS])

    def save(self) -> Saved:
        """The rows of the window."""
        return {"values": self._finder.values, "times": self._times}


FUNCTION: Final[AnswerFunction] = Motifs()
