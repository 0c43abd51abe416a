"""Formats of results: server-sent events, JSON lines, a stream of Arrow record batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol

import pyarrow as pa

from nilometer.kernels.json_values import columns_of, iso_time, rows_of
from nilometer.server.error_shape import shape_of
from nilometer.server.results.chunk import Chunk, Page
from nilometer.server.results.events import BaseComes, End, Gap, Heartbeat, State
from nilometer.server.results.offset import Offset


class Format(StrEnum):
    """The format of results."""

    JSON = "json"
    JSON_LINES = "jsonl"
    ARROW = "arrow"
    SSE = "sse"


MEDIA_TYPES: Final[Mapping[Format, str]] = {
    Format.JSON: "application/json",
    Format.JSON_LINES: "application/x-ndjson",
    Format.ARROW: "application/vnd.apache.arrow.stream",
    Format.SSE: "text/event-stream",
}

END_OF_ARROW: Final = b"\xff\xff\xff\xff\0\0\0\0"


class Encoder(Protocol):
    """Encodes what a follower receives."""

    max_rows: int
    """The maximum number of rows of one chunk."""

    def begin(self, schema: pa.Schema) -> bytes: ...
    def chunk(self, chunk: Chunk) -> bytes: ...
    def event(self, event: Heartbeat | Gap | BaseComes | State | End) -> bytes: ...


class ServerSentEvents:
    """Events `columns`, `rows`, `watermark`, `state`, `gap`, `base` and `end`.

    The id of an event is the offset after it, which a browser sends when it reconnects.
    """

    max_rows = 1000

    def begin(self, schema: pa.Schema) -> bytes:
        return _event("columns", {"columns": columns_of(schema)}, None)

    def chunk(self, chunk: Chunk) -> bytes:
        data: dict[str, Any] = {"watermark": moment(chunk.watermark)}
        if not chunk.rows.num_rows:
            return _event("watermark", data, chunk.next)
        return _event("rows", {"rows": rows_of(chunk.rows), **data}, chunk.next)

    def event(self, event: Heartbeat | Gap | BaseComes | State | End) -> bytes:
        if isinstance(event, Heartbeat):
            return b": nothing new\n\n"
        name, data, offset = _words(event)
        return _event(name, data, offset)


class JsonLines:
    """A line {"row": …, "offset": …} for every row, with the offset after it.

    Other lines have `offset` and one of `watermark`, `state`, `gap`, `base`, `end`.
    """

    max_rows = 1000

    def begin(self, schema: pa.Schema) -> bytes:
        return b""

    def chunk(self, chunk: Chunk) -> bytes:
        rows = rows_of(chunk.rows)
        offsets = [str(chunk.start.after(n)) for n in range(1, len(rows))]
        offsets.append(str(chunk.next))
        lines: list[dict[str, Any]] = [
            {"row": row, "offset": at} for row, at in zip(rows, offsets, strict=False)
        ]
        last = {"watermark": moment(chunk.watermark), "offset": str(chunk.next)}
        return b"".join(_line(one) for one in [*lines, last])

    def event(self, event: Heartbeat | Gap | BaseComes | State | End) -> bytes:
        if isinstance(event, Heartbeat):
            return b"\n"
        name, data, offset = _words(event)
        return _line({name: data, "offset": None if offset is None else str(offset)})


class ArrowStream:
    """An Arrow IPC stream; metadata of every batch: `start`, `offset` after it, `watermark`.

    Batches without rows may carry an event: `event` is its name, and `data` is JSON.
    """

    max_rows = 5000

    def __init__(self, schema: pa.Schema) -> None:
        self._nothing = one_batch(schema.empty_table())

    def begin(self, schema: pa.Schema) -> bytes:
        return bytes(schema.serialize())

    def chunk(self, chunk: Chunk) -> bytes:
        metadata = {"start": str(chunk.start), "offset": str(chunk.next)}
        if isinstance(chunk, Page):
            metadata["at_end"] = str(chunk.at_end).lower()
        if chunk.watermark is not None:
            metadata["watermark"] = str(chunk.watermark)
        return self.batch(one_batch(chunk.rows), metadata)

    def event(self, event: Heartbeat | Gap | BaseComes | State | End) -> bytes:
        if isinstance(event, Heartbeat):
            return self.batch(self._nothing, {"offset": str(event.offset)})
        name, data, offset = _words(event)
        metadata = {"event": name, "data": json.dumps(data)}
        if offset is not None:
            metadata["offset"] = str(offset)
        batch = self.batch(self._nothing, metadata)
        return batch + END_OF_ARROW if isinstance(event, End) else batch

    def batch(self, batch: pa.RecordBatch, metadata: Mapping[str, str]) -> bytes:
        """One record batch message, without the schema that precedes all of them."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch, custom_metadata=dict(metadata))
        begin = len(batch.schema.serialize())
        return bytes(memoryview(sink.getvalue())[begin : -len(END_OF_ARROW)])


def encoder_of(form: Format, schema: pa.Schema) -> Encoder:
    """The encoder for a format."""
    match form:
        case Format.ARROW:
            return ArrowStream(schema)
        case Format.SSE:
            return ServerSentEvents()
        case _:
            return JsonLines()


def whole_arrow_stream(rows: pa.Table, metadata: Mapping[str, str]) -> bytes:
    """Rows as an Arrow IPC stream of one batch, with metadata."""
    encoder = ArrowStream(rows.schema)
    batch = encoder.batch(one_batch(rows), metadata)
    return encoder.begin(rows.schema) + batch + END_OF_ARROW


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """All rows of a table in one batch."""
    batches = rows.combine_chunks().to_batches()
    if batches:
        return batches[0]
    return pa.RecordBatch.from_arrays(
        [pa.array([], f.type) for f in rows.schema], schema=rows.schema
    )


def moment(instant: int | None) -> str | None:
    return None if instant is None else iso_time(instant)


def _words(event: Gap | BaseComes | State | End) -> tuple[str, dict[str, Any], Offset | None]:
    """The name of an event, its data, and the offset after it."""
    match event:
        case Gap():
            return "gap", {**shape_of(event.error), "rows": event.error.rows}, event.oldest
        case BaseComes():
            data = {"rows": event.rows, "instant": moment(event.instant), "gone": event.error.rows}
            return "base", {**shape_of(event.error), **data}, event.oldest
        case State():
            return "state", {"phase": event.phase, "error": event.error}, event.offset
        case End():
            return "end", shape_of(event.error), None


def _event(name: str, data: dict[str, Any], offset: Offset | None) -> bytes:
    number = "" if offset is None else f"id: {offset}\n"
    return f"{number}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"
