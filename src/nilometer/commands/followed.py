"""Streams of files that appear in folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from nilometer.errors import InputError, OnlySparkError
from nilometer.local.find_files import Files
from nilometer.local.read_files import FileReader
from nilometer.operators.stage import concat


@dataclass
class Followed:
    """A stream of files, some of which have been read."""

    files: Files
    reader: FileReader
    rows: pa.Table
    """The rows of the files that existed at the start, until they are taken."""
    _seen: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._seen.update(self.files.paths())

    def take(self) -> pa.RecordBatch | None:
        """The new rows, if any."""
        rows, self.rows = self.rows, self.rows.slice(0, 0)
        if len(rows):
            return concat(rows.combine_chunks().to_batches(), rows.schema)
        new = [path for path in self.files.paths() if path not in self._seen]
        if not new:
            return None
        self._seen.update(new)
        return self._read(new)

    def _read(self, paths: Sequence[Path]) -> pa.RecordBatch:
        try:
            rows = self.reader.read(paths)
        except OnlySparkError as error:
            raise InputError(
                f"cannot read what has come for {self.reader.name}: {error.message}",
                detail=error.detail,
                hint="--engine spark reads more kinds of files and values",
            ) from None
        return concat(rows.combine_chunks().to_batches(), rows.schema)
