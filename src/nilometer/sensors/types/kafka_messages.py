"""Converts a Kafka message: its value in a format, and columns that take other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from nilometer.sensors.stream_type import BadReadingError
from nilometer.sensors.types.json_fields import check_columns
from nilometer.sensors.types.payloads import by_column, payload_reader
from nilometer.sensors.types.text_cells import cell_reader

_HEADER: Final = "header."
_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN: Final = 4096
_Part: TypeAlias = Callable[[Message], Any]


def read_parts(text: str) -> dict[str, str]:
    """Parts of a message by column.

    >>> read_parts("id=key, at=timestamp, site=header.site")
    {'id': 'key', 'at': 'timestamp', 'site': 'header.site'}
    """
    parts: dict[str, str] = {}
    for one in text.split(","):
        column, sign, part = (word.strip() for word in one.partition("="))
        is_known = part in ("key", *_PLAIN) or (part.startswith(_HEADER) and part != _HEADER)
        if not sign or not column or not is_known:
            raise ValueError(
                f"write column=part, a part is key, {', '.join(_PLAIN)} or header.NAME"
            )
        parts[column] = part
    return parts


class MessageReader:
    """Converts messages to readings, according to options and declared columns."""

    def __init__(self, chosen: Mapping[str, Any], columns: pa.Schema) -> None:
        parts: dict[str, str] = chosen["parts"] or {}
        check_columns("parts", tuple(parts), columns)
        check_columns("fields", tuple(chosen["fields"] or ()), columns)
        self._others = pa.schema([one for one in columns if one.name not in parts])
        self._parts = [(name, _part(part, columns.field(name))) for name, part in parts.items()]
        self._payload: Callable[[bytes], Any] | None = None
        if len(self._others):
            form, fields = chosen["format"], chosen["fields"]
            self._payload = payload_reader(form, fields, self._others)
        self._max_bytes: int = chosen["max_bytes"]
        self._ignores_tombstones = chosen["tombstones"] == "ignore"

    def read(self, message: Message) -> Any:
        """The value of a reading, or None if there is none; raises BadReadingError."""
        payload = message.value()
        if payload is None and (self._payload is not None or self._ignores_tombstones):
            if self._ignores_tombstones:
                return None
            raise BadReadingError("a message without a value", message.key() or b"")
        if self._payload is None:
            return {name: part(message) for name, part in self._parts}
        sent = payload if isinstance(payload, bytes) else str(payload).encode()
        if len(sent) > self._max_bytes:
            raise BadReadingError(f"a message of more than {self._max_bytes} bytes", sent[:_SHOWN])
        value = self._payload(sent)
        if not self._parts:
            return value
        parts = {name: part(message) for name, part in self._parts}
        return by_column(value, self._others, sent) | parts


def _timestamp(message: Message) -> datetime | None:
    kind, millis = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else _1970 + timedelta(milliseconds=millis)


_PLAIN: Final[Mapping[str, _Part]] = {
    "timestamp": _timestamp,
    "topic": Message.topic,
    "partition": Message.partition,
    "offset": Message.offset,
}


def _part(part: str, column: pa.Field) -> _Part:
    if part in _PLAIN:
        return _PLAIN[part]
    cell = cell_reader(column)

    def text(sent: bytes | str | None) -> Any:
        if sent is None:
            return None
        return cell(sent.decode(errors="replace") if isinstance(sent, bytes) else sent)

    if part == "key":
        return lambda message: text(message.key())
    header = part.removeprefix(_HEADER)
    return lambda message: text(dict(message.headers() or ()).get(header))
