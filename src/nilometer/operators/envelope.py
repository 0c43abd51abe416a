"""Envelopes: what travels between stages. Rows of one stream for one bucket, as Arrow IPC bytes,
with a header that every bucket gets in every micro-batch, rows or not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.kernels.admit import Punctuation
from nilometer.kernels.row_errors import RowErrors

_KEY: Final = b"nilometer"


@dataclass(frozen=True, slots=True)
class Header:
    """The origin of the rows, and what their sender has seen."""

    stream: int
    punctuation: Punctuation
    now: int | None = None
    """The time of the micro-batch, where the query needs it."""
    sender: int = 0
    """The bucket of another stage that sends this, and"""
    frontier: int | None = None
    """the instant before which it is done: nothing older will arrive."""
    errors: dict[str, Any] | None = None
    """Rows that the sender left out, reported to one bucket only."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Header:
        return cls(**{**fields, "punctuation": Punctuation(**fields["punctuation"])})


def headers(header: Header, errors: RowErrors, buckets: int) -> list[Header]:
    """A header for every bucket; the first one reports the rows that were left out."""
    return [replace(header, errors=errors.to_json()), *[header] * (buckets - 1)]


def seal(contents: Sequence[tuple[Header, pa.RecordBatch]], sink: pa.NativeFile) -> list[int]:
    """Write envelopes one after the other; they begin and end at the returned positions."""
    ends = [sink.tell()]
    for header, rows in contents:
        metadata = {_KEY: json.dumps(header.to_json(), separators=(",", ":")).encode()}
        with pa.ipc.new_stream(sink, rows.schema.with_metadata(metadata)) as writer:
            if len(rows):
                writer.write_batch(rows)
        ends.append(sink.tell())
    return ends


def seal_in_memory(contents: Sequence[tuple[Header, pa.RecordBatch]]) -> pa.BinaryArray:
    """Envelopes as a column."""
    sink = pa.BufferOutputStream()
    offsets = pa.py_buffer(np.asarray(seal(contents, sink), dtype=np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), len(contents), [None, offsets, sink.getvalue()])


def unseal(body: bytes | pa.Buffer) -> tuple[Header, list[pa.RecordBatch]]:
    """The header and the rows of an envelope; the rows are not copied."""
    reader = pa.ipc.open_stream(body)
    header = Header.from_json(json.loads(reader.schema.metadata[_KEY]))
    return header, [batch.replace_schema_metadata(None) for batch in reader]
