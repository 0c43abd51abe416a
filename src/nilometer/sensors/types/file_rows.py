"""The rows of a file of CSV, JSON lines or Parquet, many at a time.

A file whose values have the declared types is read by Arrow. From the first one on that has not,
the rest is read line by line, so that only the lines that do not fit are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from pyarrow import types

from nilometer.sensors.stream_type import BadReadingError
from nilometer.sensors.types.json_fields import parse_json
from nilometer.sensors.types.text_cells import CsvLines

FORMATS: Final = ("csv", "json", "parquet")
_BLOCK: Final = 4 << 20
_LINES: Final = 4096
_ENDINGS: Final = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class FileFormat:
    """How files are read."""

    columns: pa.Schema
    name: str | None = None
    """csv, json or parquet; None: as the file's name says."""
    header: bool = True
    separator: str = ","

    def of(self, path: Path) -> str:
        return self.name or _ENDINGS.get(path.suffix.lower(), "csv")


@dataclass(frozen=True)
class Piece:
    """Some rows of a file that fit, and what does not; `end`: the rows of the file up to here."""

    rows: pa.RecordBatch
    end: int
    bad: list[BadReadingError] = field(default_factory=list)


def read_pieces(path: Path, form: FileFormat, skip: int) -> Iterator[Piece]:
    """The rows of a file after the first `skip`; lines with too few or many cells do not count."""
    kind, end = form.of(path), 0
    bad: list[BadReadingError] = []
    try:
        for batch in _arrow_batches(path, kind, form, bad):
            start, end = end, end + len(batch)
            if end > skip:
                rows = _fit(batch.slice(max(0, skip - start)), form.columns)
                yield Piece(rows, end, bad[:])
            bad.clear()
        if bad:
            yield Piece(pa.RecordBatch.from_pylist([], form.columns), end, bad)
    except pa.ArrowInvalid:
        if kind == "parquet":
            raise
        yield from read_lines(path, form, max(skip, end), follow=False)


def read_lines(path: Path, form: FileFormat, skip: int, *, follow: bool) -> Iterator[Piece]:
    """The same, line by line; with `follow` it never ends, and a piece may be empty."""
    lines = _Lines(path, form)
    with path.open("rb") as file:
        while True:
            line = file.readline()
            if line.endswith(b"\n") or (line and not follow):
                lines.add(line, skip)
                if lines.count < _LINES:
                    continue
            elif line:
                file.seek(-len(line), 1)  # its end is still to come
            yield lines.take()
            if not line and not follow:
                return


class _Lines:
    """Gathers lines that fit, and those that do not."""

    def __init__(self, path: Path, form: FileFormat) -> None:
        self._columns = form.columns
        self._csv = CsvLines(form.columns, form.separator) if form.of(path) == "csv" else None
        self._wants_header = form.header and self._csv is not None
        self._end = 0
        self._values: list[dict[str, Any]] = []
        self._bad: list[BadReadingError] = []

    @property
    def count(self) -> int:
        return len(self._values) + len(self._bad)

    def add(self, line: bytes, skip: int) -> None:
        """Read a line; those before the first `skip` are counted only."""
        text = line.decode(errors="replace").strip("\r\n")
        if not text.strip():
            return
        if self._wants_header and self._csv is not None:
            self._wants_header = False
            self._csv.header(text)
            return
        try:
            value = self._csv.read(text) if self._csv is not None else text
            self._end += 1
            if self._end > skip:
                self._values.append(self._typed(value, text))
        except BadReadingError as error:
            if self._end >= skip:
                self._bad.append(error)

    def take(self) -> Piece:
        """What has been gathered since."""
        rows = pa.RecordBatch.from_pylist(self._values, schema=self._columns)
        piece = Piece(rows, self._end, self._bad)
        self._values, self._bad = [], []
        return piece

    def _typed(self, value: Any, text: str) -> dict[str, Any]:
        """A row whose values fit their columns."""
        found = parse_json(value) if isinstance(value, str) else value
        if not isinstance(found, dict):
            raise BadReadingError("not a JSON object", text[:4096])
        row = {}
        for column in self._columns:
            row[column.name] = _scalar(found.get(column.name), column, text)
        return row


def _scalar(value: Any, column: pa.Field, text: str) -> Any:
    try:
        if isinstance(value, str) and types.is_timestamp(column.type):
            value = datetime.fromisoformat(value)
            value = value.replace(tzinfo=value.tzinfo or UTC)
        return pa.scalar(value, column.type).as_py()
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise BadReadingError(
            f"column {column.name} is {column.type}, got {value!r:.60}", text[:4096]
        ) from error


def _arrow_batches(
    path: Path, kind: str, form: FileFormat, bad: list[BadReadingError]
) -> Iterator[pa.RecordBatch]:
    if kind == "parquet":
        file = pyarrow.parquet.ParquetFile(path)
        known = [name for name in form.columns.names if name in file.schema_arrow.names]
        yield from file.iter_batches(batch_size=1 << 16, columns=known)
        file.close()
    elif path.stat().st_size == 0:
        return
    elif kind == "csv":
        yield from _csv_batches(path, form, bad)
    else:
        parse = pyarrow.json.ParseOptions(
            explicit_schema=_as_read(form.columns), unexpected_field_behavior="ignore"
        )
        read = pyarrow.json.ReadOptions(use_threads=False, block_size=_BLOCK)
        with pyarrow.json.open_json(path, read, parse) as reader:
            yield from reader


def _csv_batches(
    path: Path, form: FileFormat, bad: list[BadReadingError]
) -> Iterator[pa.RecordBatch]:
    def refuse(row: pyarrow.csv.InvalidRow) -> str:
        reason = f"a line of {row.actual_columns} cells where {row.expected_columns} were expected"
        bad.append(BadReadingError(reason, (row.text or "")[:4096]))
        return "skip"

    names = None if form.header else form.columns.names
    read = pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names)
    parse = pyarrow.csv.ParseOptions(delimiter=form.separator, invalid_row_handler=refuse)
    convert = pyarrow.csv.ConvertOptions(
        column_types=_as_read(form.columns), strings_can_be_null=False, null_values=[""]
    )
    with pyarrow.csv.open_csv(path, read, parse, convert) as reader:
        yield from reader


def _as_read(columns: pa.Schema) -> pa.Schema:
    """Instants are read as text: Arrow takes them either with a zone or without."""
    return pa.schema(
        [
            pa.field(one.name, pa.string() if types.is_timestamp(one.type) else one.type)
            for one in columns
        ]
    )


def _fit(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The declared columns; NULL where a file has none of a name."""
    found = []
    for column in columns:
        if column.name not in batch.schema.names:
            found.append(pa.nulls(len(batch), column.type))
            continue
        values = batch.column(column.name)
        if types.is_timestamp(column.type):
            values = _instants(values)
        found.append(values.cast(column.type))
    return pa.RecordBatch.from_arrays(found, schema=columns)


def _instants(values: pa.Array) -> pa.Array:
    """Text as instants, where a zone is missing in UTC."""
    utc = pa.timestamp("us", tz="UTC")
    if types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", tz=values.type.tz)).cast(utc)
    if not types.is_string(values.type):
        return values
    values = pc.if_else(pc.equal(values, ""), None, values)
    try:
        return values.cast(utc)
    except pa.ArrowInvalid:
        return pc.assume_timezone(values.cast(pa.timestamp("us")), "UTC")
