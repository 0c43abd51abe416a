"""Which columns of a query's rows can be drawn, and their points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.json_values import unique_names
from nilometer.model.names import natural

TIME: Final = "_time"
DIFF: Final = "_diff"
MOST_LINES: Final = 8
_POINTS_AT_ONCE: Final = 40
"""Points per line and refresh; more are thinned evenly, except those a chart starts with."""

Points = list[tuple[str, list[tuple[float, float]]]]
"""Lines by name: pairs of milliseconds since 1970 and a value."""
COLOURS: Final = 8
"""The number of colours of a chart."""
OTHERS: Final = " of others"
"""The suffix of names of lines that represent several."""
SHARED: Final = -1
"""The colour number of lines that share a colour."""


@dataclass(frozen=True)
class Drawable:
    """The columns of a result that can be drawn."""

    values: tuple[str, ...]
    """Numbers."""
    keys: tuple[str, ...]
    """Columns that may distinguish lines: texts, whole numbers, truth values."""
    lanes: tuple[str, ...]
    """Times of the members of a match; fewer than two make no timeline."""

    @classmethod
    def of(cls, schema: pa.Schema) -> Drawable:
        named = list(zip(unique_names(schema.names), schema.types, strict=True))
        own = [(name, kind) for name, kind in named if name not in (TIME, DIFF)]
        lanes = tuple(name for name, kind in own if pat.is_timestamp(kind))
        return cls(
            tuple(name for name, kind in own if is_number(kind)),
            tuple(name for name, kind in own if _is_key(kind)),
            lanes if len(lanes) > 1 else (),
        )

    def first_choice(self, schema: pa.Schema) -> Choice:
        """The default choice: measured values, one line for each thing."""
        kinds = dict(zip(unique_names(schema.names), schema.types, strict=True))
        texts = [name for name in self.keys if not pat.is_integer(kinds[name])]
        named = [name for name in self.keys if name.lower().endswith(("id", "key"))]
        key = next(iter([*texts, *named]), None)
        measured = [name for name in self.values if not pat.is_integer(kinds[name])]
        counted = [name for name in self.values if name != key]
        return Choice(tuple((measured or counted)[:1]), key)


@dataclass(frozen=True)
class Choice:
    """What the user has chosen to see."""

    values: tuple[str, ...]
    key: str | None


@dataclass
class Lines:
    """The lines of a chart; those seen first have their own colours, the others share one."""

    choice: Choice
    own: list[str] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    colours: dict[str, int] = field(default_factory=dict)
    """The colour number of each line."""

    def points(self, rows: pa.Table, max_points: int = _POINTS_AT_ONCE) -> Points:
        """The points that these rows add, at most `max_points` per line."""
        rows = _that_come(rows.rename_columns(unique_names(rows.schema.names)))
        if not rows.num_rows:
            return []
        points: Points = []
        times = _millis(rows[TIME])
        keys = self._keys(rows)
        for value in self.choice.values:
            numbers = _numbers(rows[value])
            points += self._of_value(value, times, numbers, keys, max_points)
        self._paint([name for name, _ in points])
        return points

    def _paint(self, names: Sequence[str]) -> None:
        """Assign colours to new lines: the colour for the name, or the next free one."""
        for name in sorted(set(names) - set(self.colours), key=natural):
            free = set(range(COLOURS)) - set(self.colours.values()) or set(range(COLOURS))
            first = crc32(name.encode()) % COLOURS
            self.colours[name] = min(free, key=lambda one: (one - first) % COLOURS)
            if name.endswith(OTHERS):
                self.colours[name] = SHARED

    def _keys(self, rows: pa.Table) -> list[str] | None:
        if self.choice.key is None:
            return None
        keys = [_key_text(key) for key in rows[self.choice.key].to_pylist()]
        for key in sorted(set(keys), key=natural):
            if key not in self.own and len(self.own) < MOST_LINES // max(
                1, len(self.choice.values)
            ):
                self.own.append(key)
        self.others.update(key for key in keys if key not in self.own)
        return keys

    def _of_value(
        self,
        value: str,
        times: np.ndarray,
        numbers: np.ndarray,
        keys: list[str] | None,
        max_points: int,
    ) -> Points:
        if keys is None:
            return _line(value, times, numbers, max_points)
        held = np.array(keys, dtype=object)
        points: Points = []
        for key in self.own:
            here = held == key
            name = key if len(self.choice.values) == 1 else f"{value} of {key}"
            points += _line(name, times[here], numbers[here], max_points)
        left = ~np.isin(held, self.own) & np.isfinite(numbers)
        if left.any():
            mean = float(numbers[left].mean())
            points.append((f"mean {value}{OTHERS}", [(float(times[left].max()), mean)]))
        return points


def matches(rows: pa.Table, lanes: Sequence[str]) -> list[list[float]]:
    """The times of each result in milliseconds, one per lane; results with NULL are omitted."""
    rows = _that_come(rows.rename_columns(unique_names(rows.schema.names)))
    rows = rows.select(list(lanes)).drop_null()
    columns = [_millis(rows[lane]).tolist() for lane in lanes]
    return [list(times) for times in zip(*columns, strict=True)]


def _line(name: str, times: np.ndarray, numbers: np.ndarray, max_points: int) -> Points:
    good = np.isfinite(numbers)
    times, numbers = times[good], numbers[good]
    if not len(times):
        return []
    order = np.argsort(times, kind="stable")
    if len(order) > max_points:
        order = order[np.linspace(0, len(order) - 1, max_points).astype(int)]
    return [(name, list(zip(times[order].tolist(), numbers[order].tolist(), strict=True)))]


def _that_come(rows: pa.Table) -> pa.Table:
    """Without retractions of a changelog, and without rows that have always held."""
    if DIFF in rows.schema.names:
        rows = rows.filter(pc.greater(rows[DIFF], 0))
    return rows.filter(pc.greater(rows[TIME].cast(pa.int64()), 0))


def _millis(column: pa.ChunkedArray) -> np.ndarray:
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    return np.asarray(micros.to_numpy() / 1000.0)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """The values as floats; NULL is NaN, which is not drawn."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=float)


def _key_text(key: object) -> str:
    return "NULL" if key is None else str(key)[:60]


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type can be drawn."""
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


def _is_key(kind: pa.DataType) -> bool:
    return bool(
        pat.is_string(kind)
        or pat.is_large_string(kind)
        or pat.is_integer(kind)
        or pat.is_boolean(kind)
    )
