"""Events in a server's log: a sentence for people, and fields for programs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

_EVENT: Final = "nilometer_event"
_FIELDS: Final = "nilometer_fields"
_SPARE: Final = "nilometer_spare"


def event(name: str, spare: str | None = None, **fields: Any) -> dict[str, Any]:
    """The `extra` of a log call: the event's name and its fields.

    `spare`: among events with the same name and the same `spare`, a server logs only a few a
    minute and counts the others, so that nobody can fill its log.

    >>> log = logging.getLogger("nilometer.example")
    >>> log.debug("query %s failed", "q", extra=event("query_failed", query="q"))
    """
    return {_EVENT: name, _FIELDS: fields, _SPARE: spare}


def event_of(record: logging.LogRecord) -> str | None:
    """The name of the event that a record logs, if it has one."""
    event: str | None = getattr(record, _EVENT, None)
    return event


def fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """The fields of the event that a record logs."""
    fields: Mapping[str, Any] = getattr(record, _FIELDS, {})
    return fields


def spared_by(record: logging.LogRecord) -> str | None:
    """The key by which records like this are counted and limited; None: all are logged."""
    key: str | None = getattr(record, _SPARE, None)
    return key
