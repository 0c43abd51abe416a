"""Whether a panel may have something new to show: how many rows its sources have had."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from nilometer.errors import NilometerError
from nilometer.model.dashboard import Source, SourceKind
from nilometer.server.dashboards.panel_source import RANGE
from nilometer.server.service import Service
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.query_text import names_read
from nilometer.sql.statements import read_query

Marks = Mapping[str, int]
"""Numbers of rows so far, by names in lower case."""


async def read_marks(service: Service) -> Marks:
    """How many rows each stream and query has had."""
    marks = {one.name.lower(): one.rows for one in await service.streams.all()}
    return marks | {one.name.lower(): one.result_rows for one in await service.queries.all()}


def mark_of(source: Source, marks: Marks) -> tuple[int, ...] | None:
    """A mark that changes when a source has new rows; None: unknown.

    >>> mark_of(Source(SourceKind.STREAM, "S"), {"s": 3})
    (3,)
    """
    names = _names(source.text) if source.kind is SourceKind.SELECT else (source.text.lower(),)
    if not names or any(one not in marks for one in names):
        return None
    return tuple(marks[one] for one in names)


@lru_cache(maxsize=1000)
def _names(text: str) -> tuple[str, ...]:
    """The names that a SELECT reads; empty if it cannot be parsed."""
    try:
        values = {one: 0 for one in RANGE if f":{one}" in text}
        return tuple(sorted(names_read(read_query(text, Parameters(values)))))
    except NilometerError:
        return ()
