"""Logs for tests: small rows with running numbers, and a store with an object store's abilities."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs

from nilometer.log.dropped_rows import read_dropped_rows
from nilometer.log.frame import Frame
from nilometer.log.layout import TIME, TIMESTAMP, LogLayout
from nilometer.log.location import storage_at
from nilometer.log.options import Fsync, LogOptions
from nilometer.model.time import FOREVER

SCHEMA = pa.schema([(TIME, TIMESTAMP), ("k", pa.int64()), ("v", pa.float64())])
LAYOUT = LogLayout(SCHEMA, TIME)
OPTIONS_TO_PACK = LogOptions(fsync=Fsync.NEVER, segment=20_000, memory=0, history=FOREVER)


def rows_from(first: int, count: int) -> pa.RecordBatch:
    """Rows with the numbers first … first+count-1, each at the microsecond of its number."""
    numbers = np.arange(first, first + count)
    columns = [pa.array(numbers).view(TIMESTAMP), pa.array(numbers), pa.array(numbers / 7)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def rows_dropped(log: str | Path) -> int:
    """How many rows a log has ever dropped early."""
    return read_dropped_rows(storage_at(log))


def numbers_in(frames: Iterable[Frame]) -> list[int]:
    """The running numbers of rows, each checked against its position."""
    numbers: list[int] = []
    for frame in frames:
        assert frame.end.row - frame.start.row == len(frame.rows)
        numbers += frame.rows.column("k").to_pylist()
    return numbers


class ObjectStore(fs.FileSystemHandler):
    """Objects are put as a whole, read in ranges, listed and deleted; nothing else."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.puts = 0

    def get_type_name(self) -> str:
        return "objects"

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(one.strip("/")) for one in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        base = selector.base_dir.strip("/") + "/"
        inside = [one for one in list(self.objects) if one.startswith(base)]
        return [self._info(one) for one in inside if "/" not in one[len(base) :]]

    def _info(self, path: str) -> fs.FileInfo:
        content = self.objects.get(path)
        if content is None:
            return fs.FileInfo(path, fs.FileType.NotFound)
        return fs.FileInfo(path, fs.FileType.File, size=len(content))

    def create_dir(self, path: str, recursive: bool) -> None:
        """There are no folders, only names."""

    def delete_file(self, path: str) -> None:
        del self.objects[path.strip("/")]

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path.strip("/") not in self.objects:
            raise FileNotFoundError(path)
        return pa.PythonFile(pa.BufferReader(self.objects[path.strip("/")]), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_Upload(self, path.strip("/")), mode="w")

    def normalize_path(self, path: str) -> str:
        return path

    def _refuse(self, *_: Any) -> Any:
        raise OSError("an object store cannot do this")

    delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    move = copy_file = open_append_stream = _refuse


class _Upload:
    """Bytes on their way to an object, which is there once this is closed."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def tell(self) -> int:
        return sum(map(len, self._parts))

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._store.objects[self._path] = b"".join(self._parts)
            self._store.puts += 1
