"""Lines of a server's log: one for each event, so that no event can hide another."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from nilometer.model.events import event_of, fields_of
from nilometer.model.secrets import HIDDEN, shown_text
from nilometer.server.log_settings import LogFormat

_LONGEST: Final = 4_000
_LONGEST_TRACE: Final = 20_000
_TOKEN: Final = re.compile(r"\bnm_[A-Za-z0-9_-]{16,}")


class Lines(logging.Formatter):
    """Records as lines of text, or as JSON: without secrets, control characters escaped."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._write = _as_json if form == LogFormat.JSON else _as_text

    def format(self, record: logging.LogRecord) -> str:
        trace = None
        if record.exc_info and record.exc_info[0] is not None:
            trace = _safe(self.formatException(record.exc_info), _LONGEST_TRACE)
        return self._write(record, _safe(record.getMessage(), _LONGEST), trace)


def _as_text(record: logging.LogRecord, message: str, trace: str | None) -> str:
    line = f"{_time(record)} {record.levelname} {record.name}: {message}"
    return escaped(line if trace is None else f"{line}\n{trace}")


def _as_json(record: logging.LogRecord, message: str, trace: str | None) -> str:
    about = {
        "time": _time(record),
        "level": record.levelname,
        "logger": record.name,
        "event": event_of(record),
        "message": message,
        "error": trace,
    }
    fields = {name: _value(one) for name, one in fields_of(record).items()}
    whole = fields | {name: one for name, one in about.items() if one is not None}
    ordered = {name: whole.pop(name) for name in about if name in whole} | whole
    return json.dumps(ordered, allow_nan=False)  # everything except ASCII is escaped


def escaped(text: str) -> str:
    r"""A text with control characters and those that reverse text made visible.

    >>> escaped("one\ntwo \x1b[31m\u202e")
    'one\\ntwo \\x1b[31m\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def _time(record: logging.LogRecord) -> str:
    text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and isfinite(value):
        return round(value, 6)
    return _safe(str(value), _LONGEST)


def _safe(text: str, longest: int) -> str:
    text = _TOKEN.sub(f"nm_{HIDDEN}", shown_text(text))
    return text if len(text) <= longest else f"{text[:longest]}…"
