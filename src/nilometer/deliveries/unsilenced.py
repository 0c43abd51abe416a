"""A delivery unit that receives only the rows that are not silenced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from nilometer.deliveries.unit import Chunk, DeliveryUnit
from nilometer.model.options import Option


class Unsilenced:
    """Passes on runs of rows that are not silenced; their ids stay the same."""

    options: Sequence[Option] = ()

    def __init__(self, unit: DeliveryUnit, column: str) -> None:
        self._unit = unit
        self._column = column
        self.row_bytes: Callable[[Chunk], list[int]] | None = getattr(unit, "row_bytes", None)

    def deliver(self, chunk: Chunk) -> None:
        for run in runs(chunk, self._column):
            self._unit.deliver(run)

    def close(self) -> None:
        self._unit.close()


def runs(chunk: Chunk, column: str) -> Iterator[Chunk]:
    """The parts of a chunk whose rows do not have this column true."""
    silenced = chunk.rows.column(column).to_pylist()
    at = 0
    for is_silenced, some in groupby(silenced):
        length = len(list(some))
        if not is_silenced:
            yield replace(chunk, first_row=chunk.first_row + at, rows=chunk.rows.slice(at, length))
        at += length
