"""Chunks as bytes: compact for the state store, and as a file whose columns need no decoding."""

from __future__ import annotations

import json
import mmap
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, make_chunk
from nilometer.kernels.indexes import Index, KeyTimeIndex, NoIndex, TimeIndex

_ALIGNMENT: Final = 64
_MOST_REMEMBERED: Final = 10_000
_verified: set[tuple[str, int, int]] = set()


def encode_rows(chunk: Chunk) -> bytes:
    """The rows of a chunk as Arrow IPC; the index can be made again from them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunk.rows.schema) as writer:
        writer.write_batch(chunk.rows)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def decode_rows(encoded: bytes, layout: RowLayout, kernel: Kernel) -> Chunk:
    """The chunk of such rows."""
    rows = pa.concat_batches(list(pa.ipc.open_stream(encoded)))
    return make_chunk(rows, layout, kernel)


def write_chunk_file(chunk: Chunk, path: Path, checksum: int) -> None:
    """Write rows, hashes and index so that they can be mapped into memory as they are.

    The checksum is that of the encoded rows: it ties the file to its twin in the state store.
    The file appears under its name only when it is complete.
    """
    sections: dict[str, npt.NDArray[Any]] = {
        "rows": np.frombuffer(encode_rows(chunk), np.uint8),
        "hashes": chunk.hashes,
    }
    fields: dict[str, int] = {}
    if isinstance(chunk.index, KeyTimeIndex):
        sections |= {"sort_keys": chunk.index.sort_keys, "slots": chunk.index.slots}
        names = ("origin", "first", "last", "time_bits", "shift")
        fields = {name: getattr(chunk.index, name) for name in names}
    body = bytearray()
    extents: dict[str, tuple[int, int]] = {}
    for name, values in sections.items():
        body += bytes(-len(body) % _ALIGNMENT)
        extents[name] = (len(body), values.nbytes)
        body += np.ascontiguousarray(values).view(np.uint8).data
    header = {"checksum": checksum, "crc": zlib.crc32(body), "extents": extents, "index": fields}
    head = json.dumps(header).encode()
    head += b" " * (-(len(head) + 8) % _ALIGNMENT)
    aside = path.with_suffix(".part")
    with open(aside, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.write(body)
    aside.rename(path)


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
    hashes = np.frombuffer(sections["hashes"], np.uint64)
    return Chunk(rows, times, hashes, _index(kernel, times, sections, header["index"]))


def _index(
    kernel: Kernel, times: Int64s, sections: dict[str, memoryview], fields: dict[str, Any]
) -> Index:
    if kernel is Kernel.HASH:
        index = KeyTimeIndex(**fields, sort_keys=np.frombuffer(sections["sort_keys"], np.int64))
        index.__dict__["slots"] = np.frombuffer(sections["slots"], np.int32)
        return index
    return TimeIndex(times) if kernel is Kernel.MERGE else NoIndex(len(times))


def _is_intact(path: Path, crc: int, body: memoryview) -> bool:
    """Whether the content is what was written; looked at once per process and file."""
    status = path.stat()
    seen = (str(path), status.st_ino, status.st_mtime_ns)
    if seen not in _verified:
        if zlib.crc32(body) != crc:
            return False
        if len(_verified) >= _MOST_REMEMBERED:
            _verified.clear()
        _verified.add(seen)
    return True
