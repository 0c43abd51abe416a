"""Statistics of a stream, measured while it runs: rows per second, distinct values per column.

They decide in which order joins look for partners, never what they find. So rows are sampled, and
the statistics from before a restart count until enough is known again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.distinct_sketch import DistinctSketch
from nilometer.sql.catalog import Statistics

MEASURED: Final = "measured"
"""The name under which it is kept beside the learned intervals of sensors."""
_MOST: Final = 1e18
_SECOND: Final = 1_000_000
_SAMPLE_EVERY: Final = _SECOND
_SAMPLE: Final = 1_000
"""This many rows are sampled, once in this time."""
_ENOUGH_TIME: Final = 60 * _SECOND
_ENOUGH_ROWS: Final = 100
"""A rate needs this much time and this many rows; column values need this many rows."""
_TIMES: Final = 4
"""Earlier statistics count until this many times as many rows have arrived."""
_FORGOTTEN: Final = 600 * _SECOND
"""A rate covers the last ten to twenty minutes."""


@dataclass
class MeasuredStream:
    """Measures one stream; only the thread that stores its rows adds, any thread may read."""

    before: Statistics = field(default_factory=Statistics)
    _since: int | None = None
    _rows: int = 0
    _earlier: tuple[int, int] | None = None
    """When the previous period began, and how many rows arrived in it."""
    _sampled_at: int | None = None
    _sampled: int = 0
    _sketches: dict[str, DistinctSketch] = field(default_factory=dict)
    _now: int = 0

    def add(self, rows: pa.RecordBatch, now: int) -> None:
        """Add rows that were stored."""
        self._count(len(rows), now)
        if self._sampled_at is not None and 0 <= now - self._sampled_at < _SAMPLE_EVERY:
            return
        self._sampled_at = now
        chosen = rows.select([one.name for one in rows.schema if not pat.is_nested(one.type)])
        if len(rows) > _SAMPLE:  # at random: sensors may come in turn
            places = np.random.default_rng().choice(len(rows), _SAMPLE, replace=False)
            chosen = chosen.take(pa.array(np.sort(places)))
        self._sampled += min(len(rows), _SAMPLE)
        for name, column in zip(chosen.schema.names, chosen.columns, strict=True):
            self._sketches.setdefault(name, DistinctSketch()).add(column)

    def _count(self, rows: int, now: int) -> None:
        if self._since is None or now < self._since:
            self._since, self._rows, self._earlier = now, 0, None
        elif now - self._since > _FORGOTTEN:
            is_recent = now - self._since <= 2 * _FORGOTTEN
            self._earlier = (self._since, self._rows) if is_recent else None
            self._since, self._rows = now, 0
        self._rows += rows
        self._now = now

    @property
    def statistics(self) -> Statistics:
        """The current statistics; where unknown, the earlier ones."""
        rate, distinct = self.before.rate, dict(self.before.distinct)
        if self._since is not None:
            since, earlier = self._earlier or (self._since, 0)
            rows, length = earlier + self._rows, self._now - since
            if rows >= _ENOUGH_ROWS and length >= _ENOUGH_TIME:
                rate = rows * _SECOND / length
        if self._sampled >= _ENOUGH_ROWS:
            for name, one in dict(self._sketches).items():
                before = distinct.get(name, 1.0)
                few = self._sampled < _TIMES * before  # too few rows to show as many values
                distinct[name] = max(before if few else 1.0, one.estimate)
        return Statistics(rate, distinct)

    def to_json(self) -> dict[str, Any]:
        """What must be known after a restart."""
        statistics = self.statistics
        return {"rate": statistics.rate, "distinct": dict(statistics.distinct)}


def read_measured(content: object) -> MeasuredStream:
    """Continue from what `to_json` returned; invalid parts are ignored."""
    stored = content if isinstance(content, Mapping) else {}
    rate, distinct = _number(stored.get("rate")), stored.get("distinct")
    columns = distinct if isinstance(distinct, Mapping) else {}
    values = {str(name): _number(one) for name, one in columns.items()}
    return MeasuredStream(
        Statistics(rate, {name: one for name, one in values.items() if one is not None})
    )


def _number(value: object) -> float | None:
    """A number above 0; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < _MOST else None
