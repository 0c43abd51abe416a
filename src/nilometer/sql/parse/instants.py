"""DATE '2026-01-01' and TIMESTAMP '2026-01-01 00:00:00Z': dates and instants as constants."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final
from zoneinfo import ZoneInfo

from sqlglot import exp

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LOCAL: Final = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")
_ZONED: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)"
)
"""As Spark reads them: a zone follows the seconds, with an offset of at most 18 hours."""


_INSTANTS: Final = (exp.DType.DATE, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)


def is_instant(cast: exp.Cast) -> bool:
    """Whether a cast turns a string literal into a date or an instant."""
    is_text = isinstance(cast.this, exp.Literal) and cast.this.is_string
    return is_text and cast.to.this in _INSTANTS and not cast.args.get("safe")


def read_instant(cast: exp.Cast, zone: str = "") -> date | datetime | None:
    """The date or the instant that a string literal is cast to; None for other casts.

    An instant without a zone depends on the session, so it is None as well unless a zone is given.

    >>> from sqlglot import parse_one
    >>> read_instant(parse_one("DATE '2026-01-02'", dialect="spark"))
    datetime.date(2026, 1, 2)
    >>> read_instant(parse_one("TIMESTAMP '2026-01-02'", dialect="spark")) is None
    True
    """
    text = cast.this
    if not is_instant(cast):
        return None
    try:
        if cast.to.this is exp.DType.DATE and _DATE.fullmatch(text.name):
            return date.fromisoformat(text.name)
        if cast.to.this is not exp.DType.DATE:
            return _instant(text.name, zone)
    except (ValueError, OverflowError):  # 2026-02-30, or 0001-01-01 00:00:00+01:00
        pass
    return None


def _instant(text: str, zone: str) -> datetime | None:
    if _ZONED.fullmatch(text):
        return datetime.fromisoformat(text).astimezone(UTC)
    if zone and _LOCAL.fullmatch(text):
        date_only = "" if len(text) > len("2026-01-01") else " 00:00"
        local = datetime.fromisoformat(f"{text}{date_only}")
        return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return None
