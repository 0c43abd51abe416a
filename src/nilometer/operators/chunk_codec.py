"""Chunks as bytes: compact for the state store, and as a file whose columns need no decoding."""

from __future__ import annotations

import json
import mmap
import zlib
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.kernels.arrays import Int32s, Int64s
from nilometer.kernels.chunk import Access, Chunk, Kernel, RowLayout, make_chunk
from nilometer.kernels.indexes import Index, KeyTimeIndex, NoIndex, TimeIndex
from nilometer.log.frame_format import PAYS_FROM, THREADS_PAY_FROM, ipc_options

Sections: TypeAlias = dict[str, npt.NDArray[Any]]

_ALIGNMENT: Final = 64
_FIELDS: Final = ("origin", "first", "last", "time_bits", "shift")
_MOST_REMEMBERED: Final = 10_000
_verified: set[tuple[str, int, int]] = set()


def encode_rows(chunk: Chunk) -> bytes:
    """The rows of a chunk, compressed; the index can be rebuilt from them.

    Spark's state moves slowly, so a fifth of the bytes is worth the few milliseconds.
    """
    pays = chunk.rows.nbytes >= PAYS_FROM
    encoded: bytes = _to_ipc(chunk, "zstd" if pays else None).to_pybytes()
    return encoded


def _to_ipc(chunk: Chunk, compression: str | None = None) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = ipc_options(compression, chunk.rows.nbytes)
    with pa.ipc.new_stream(sink, chunk.rows.schema, options=options) as writer:
        writer.write_batch(chunk.rows)
    return sink.getvalue()


def decode_rows(encoded: bytes, layout: RowLayout, kernel: Kernel) -> Chunk:
    """Decode the chunk of such rows."""
    options = pa.ipc.IpcReadOptions(use_threads=len(encoded) >= THREADS_PAY_FROM)
    rows = pa.concat_batches(list(pa.ipc.open_stream(encoded, options=options)))
    return make_chunk(rows, layout, kernel)


def write_chunk_file(chunk: Chunk, path: Path, checksum: int) -> None:
    """Write rows, hashes and indexes so that they can be mapped into memory as they are.

    The checksum is that of the encoded rows: it ties the file to its twin in the state store.
    The file appears under its name only when it is complete.
    """
    sections: Sections = {"rows": np.frombuffer(_to_ipc(chunk), np.uint8)}
    indexes: dict[str, dict[str, int]] = {}
    for key, hashes in chunk.hashes.items():
        sections[f"hashes {key}"] = hashes
        access = chunk.access(key)
        if isinstance(access.index, KeyTimeIndex):
            sections |= _index_sections(key, access.index, access.order)
            indexes[str(key)] = {name: getattr(access.index, name) for name in _FIELDS}
    body = bytearray()
    extents: dict[str, tuple[int, int]] = {}
    for name, values in sections.items():
        body += bytes(-len(body) % _ALIGNMENT)
        extents[name] = (len(body), values.nbytes)
        body += np.ascontiguousarray(values).view(np.uint8).data
    header = {"checksum": checksum, "crc": zlib.crc32(body), "extents": extents, "index": indexes}
    head = json.dumps(header).encode()
    head += b" " * (-(len(head) + 8) % _ALIGNMENT)
    aside = path.with_suffix(".part")
    with open(aside, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.write(body)
    aside.rename(path)


def _index_sections(key: int, index: KeyTimeIndex, order: Int32s | None) -> Sections:
    sections: Sections = {f"sort_keys {key}": index.sort_keys, f"slots {key}": index.slots}
    return sections if order is None else {**sections, f"order {key}": order}


def read_chunk_file(path: Path, checksum: int, layout: RowLayout, kernel: Kernel) -> Chunk | None:
    """The chunk in a file, mapped into memory; None if it is missing, torn, or another's."""
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(mapped[:8], "little")
        header = json.loads(mapped[8 : 8 + size])
        body = memoryview(mapped)[8 + size :]
        if header["checksum"] != checksum or not _is_intact(path, header["crc"], body):
            return None
    except (OSError, ValueError, KeyError):
        return None
    sections = {name: body[at : at + n] for name, (at, n) in header["extents"].items()}
    rows = pa.ipc.open_stream(pa.py_buffer(sections["rows"])).read_next_batch()
    times = layout.times(rows)
    hashes = {key: np.frombuffer(sections[f"hashes {key}"], np.uint64) for key in layout.own}
    accesses = [_access(key, sections, fields) for key, fields in header["index"].items()]
    index = accesses[0].index if accesses else _plain_index(kernel, times)
    further = dict(zip(layout.own[1:], accesses[1:], strict=bool(accesses)))
    return Chunk(rows, times, hashes, index, further, layout.untils(rows))


def _access(key: str, sections: dict[str, memoryview], fields: dict[str, Any]) -> Access:
    sort_keys = np.frombuffer(sections[f"sort_keys {key}"], np.int64)
    index = KeyTimeIndex(**fields, sort_keys=sort_keys)
    index.__dict__["slots"] = np.frombuffer(sections[f"slots {key}"], np.int32)
    order = sections.get(f"order {key}")
    return Access(index, None if order is None else np.frombuffer(order, np.int32))


def _plain_index(kernel: Kernel, times: Int64s) -> Index:
    return NoIndex(len(times)) if kernel is Kernel.NESTED else TimeIndex(times)


def _is_intact(path: Path, crc: int, body: memoryview) -> bool:
    """Whether the content is what was written; checked once per process and file."""
    status = path.stat()
    seen = (str(path), status.st_ino, status.st_mtime_ns)
    if seen not in _verified:
        if zlib.crc32(body) != crc:
            return False
        if len(_verified) >= _MOST_REMEMBERED:
            _verified.clear()
        _verified.add(seen)
    return True
