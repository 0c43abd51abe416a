"""MATCHES: where a stream is similar to a shape (STEAM 7.3, subsequence similarity matching)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arrays import Int64s
from nilometer.mining.shape_matcher import Normalize, ShapeMatcher
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    Columns,
    Follower,
    FollowFunction,
    MiningError,
    Numbers,
    OptionArgument,
    OptionKind,
    ResultColumn,
    RowResults,
    Saved,
    TableArgument,
    Tables,
    Takes,
    WindowUse,
)
from nilometer.mining.vectors import as_numbers
from nilometer.model.time import FOREVER

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


class Matches:
    """The table function: follows a column, and reports the best of overlapping matches."""

    name = "MATCHES"
    about = "where a stream looks like a given shape"
    columns = (
        ColumnArgument("value", Takes.NUMBER, "what is compared; NULL and NaN break the series"),
    )
    options = (
        OptionArgument(
            "distance",
            OptionKind.NUMBER,
            "the largest distance of a match; by default that of a correlation of 0.9",
            minimum=0.0,
        ),
        OptionArgument(
            "normalize",
            OptionKind.TEXT,
            "'z' compares shapes whatever their level and height, 'none' the values as they are",
            default=Normalize.Z.value,
            choices=tuple(Normalize),
        ),
    )
    tables = (
        TableArgument(
            "shape",
            (
                ColumnArgument("position", Takes.PLAIN, "what orders the points, none twice"),
                ColumnArgument("value", Takes.NUMBER, "the value of a point"),
            ),
            "the points of the shape, as far apart as the rows of the stream are",
        ),
    )
    window = WindowUse.NONE
    needs = ("scipy",)

    def results(self, call: CheckedCall) -> tuple[ResultColumn, ...]:
        """The distance of a match, and the times of its first and last row."""
        if call.options["normalize"] == Normalize.NONE and call.options["distance"] is None:
            raise MiningError(
                "MATCHES needs a distance where values are compared as they are",
                hint="write distance => and the largest Euclidean distance of a match",
                argument="distance",
            )
        return (
            ResultColumn("distance", pa.float64()),
            ResultColumn("starts", _TIMESTAMP),
            ResultColumn("ends", _TIMESTAMP),
        )

    def follower(self, call: CheckedCall, tables: Tables, saved: Saved | None) -> Follower:
        """The follower of one key."""
        matcher = ShapeMatcher(
            read_shape(tables["shape"]), call.options["distance"], call.options["normalize"]
        )
        if saved is None:
            return MatchFollower(matcher, np.empty(0, dtype=np.int64))
        return MatchFollower(matcher.load(saved), saved["times"])


class MatchFollower:
    """Follows a series, and keeps the times of its last rows."""

    def __init__(self, matcher: ShapeMatcher, times: Int64s) -> None:
        self._matcher = matcher
        self._times = times

    def follow(self, times: Int64s, columns: Columns) -> RowResults:
        """The matches that the next rows confirm, each at the row that confirms it."""
        matches = self._matcher.add(as_numbers(columns["value"]))
        both = np.concatenate([self._times, times])
        begin = self._matcher.seen - len(both)
        starts, ends, known = (
            np.array([getattr(one, name) for one in matches], dtype=np.int64) - begin
            for name in ("start", "end", "known")
        )
        self._times = both[-self._matcher.kept :].copy()
        return RowResults(
            known - (len(both) - len(times)),
            (
                pa.array([one.distance for one in matches], pa.float64()),
                pa.array(both[starts]).cast(_TIMESTAMP),
                pa.array(both[ends]).cast(_TIMESTAMP),
            ),
        )

    def dead_after(self) -> int | None:
        """Never: a series may continue at any time."""
        return FOREVER

    def save(self) -> Saved:
        """The last values with their times, fewer than twice the length of the shape."""
        return {**self._matcher.save(), "times": self._times}


def read_shape(points: pa.RecordBatch) -> Numbers:
    """The values of a shape in the order of their positions."""
    position, value = points.column(0), points.column(1)
    if position.null_count:
        raise MiningError("a point of the shape has no position: it is NULL", argument="shape")
    order = pc.sort_indices(position)
    ordered = position.take(order)
    if pc.any(pc.equal(ordered[1:], ordered[:-1])).as_py():
        raise MiningError(
            "two points of the shape have the same position",
            hint="the first column of the query orders the points",
            argument="shape",
        )
    return as_numbers(value.take(order))


FUNCTION: Final[FollowFunction] = Matches()
