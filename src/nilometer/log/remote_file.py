"""Objects of a store that are read: in few, large ranges at the same time, or held as a whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

_RANGE: Final = 2 << 20
_RANGES_AT_ONCE: Final = 4
RANGES_BYTES: Final = _RANGE * _RANGES_AT_ONCE


class RemoteFile:
    """An object that is read in ranges; a long one is cut into several at the same time."""

    ahead: Final = RANGES_BYTES

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self.size = file.size()

    def read_at(self, start: int, length: int) -> pa.Buffer:
        length = max(0, min(length, self.size - start))
        if length <= _RANGE:
            self._file.seek(start)
            return self._file.read_buffer(length)
        parts = [
            (at, min(_RANGE, start + length - at)) for at in range(start, start + length, _RANGE)
        ]
        with ThreadPoolExecutor(_RANGES_AT_ONCE) as pool:
            read = pool.map(lambda part: self._file.read_at(part[1], part[0]), parts)
            return pa.py_buffer(b"".join(read))


@dataclass(frozen=True)
class HeldFile:
    """An object that was read as a whole; nothing is copied."""

    content: pa.Buffer

    @property
    def ahead(self) -> int:
        return self.size

    @property
    def size(self) -> int:
        return int(self.content.size)

    @property
    def nbytes(self) -> int:
        return self.size

    def read_at(self, start: int, length: int) -> pa.Buffer:
        return self.content.slice(min(start, self.size), max(0, min(length, self.size - start)))
