"""DATE '2026-01-01' and TIMESTAMP '2026-01-01 00:00:00Z': dates and instants as constants."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

from sqlglot import exp

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LOCAL: Final = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")
_ZONED: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)"
)
"""As Spark reads them: a zone follows seconds, and is at most 18 hours off."""


def read_instant(cast: exp.Cast, zone: str = "") -> date | datetime | None:
    """The date or the instant that a text is cast to; None if it is another cast.

    An instant that names no zone depends on the session, so it is None, too, unless a zone is
    given.

    >>> from sqlglot import parse_one
    >>> read_instant(parse_one("DATE '2026-01-02'", dialect="spark"))
    datetime.date(2026, 1, 2)
    >>> read_instant(parse_one("TIMESTAMP '2026-01-02'", dialect="spark")) is None
    True
    """
    text = cast.this
    if not isinstance(text, exp.Literal) or not text.is_string or cast.args.get("safe"):
        return None
    try:
        if cast.to.this is exp.DType.DATE and _DATE.fullmatch(text.name):
            return date.fromisoformat(text.name)
        if cast.to.this in (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ):
            return _instant(text.name, zone)
    except (ValueError, OverflowError):  # 2026-02-30, or 0001-01-01 00:00:00+01:00
        pass
    return None


def _instant(text: str, zone: str) -> datetime | None:
    if _ZONED.fullmatch(text):
        return datetime.fromisoformat(text).astimezone(UTC)
    if zone and _LOCAL.fullmatch(text):
        date_only = "" if len(text) > len("2026-01-01") else " 00:00"
        return datetime.fromisoformat(f"{text}{date_only}{zone}").astimezone(UTC)
    return None
