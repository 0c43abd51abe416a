"""Requests for stored rows of a time range, from Python arguments."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from urllib.parse import quote

import pyarrow as pa

from nilometer.client.calls import Call
from nilometer.client.replies import Reply, read_table
from nilometer.errors import InputError

_DATE: Final = re.compile(r"\s*\d{4}-\d{2}-\d{2}(?!\d|-)", re.ASCII)
"""How instants begin, and offsets do not."""


def time_range(
    query: str, start: str | datetime, end: str | datetime | None, limit: int | None
) -> Call[pa.Table] | None:
    """The parameters of a request; None if rows are not requested by their times.

    >>> time_range("q", "2026-01-01", None, None).params
    {'format': 'arrow', 'start': '2026-01-01'}
    >>> time_range("q", "3f2a9c1e-0-1024-0-170-5be01c77", None, None)
    """
    has_start = isinstance(start, datetime) or _DATE.match(start) is not None
    if not has_start and end is None:
        return None
    if not has_start and start != "start":
        raise InputError(
            "end= needs an instant as start=",
            detail=f"got {start!r}",
            hint='write start="2026-01-31T12:00:00Z", a datetime, or leave it out',
        )
    params: dict[str, str | list[str]] = {"format": "arrow"}
    if has_start:
        params["start"] = _text(start)
    if end is not None:
        params["end"] = _text(end)

    def read(reply: Reply) -> pa.Table:
        table = read_table(reply)
        return table if limit is None else table.slice(0, limit)

    return Call("GET", f"/queries/{quote(query, safe='')}/download", read, params=params)


def _text(at: str | datetime) -> str:
    return at.isoformat() if isinstance(at, datetime) else at.strip()
