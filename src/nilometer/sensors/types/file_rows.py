"""The rows of a file of CSV, JSON lines or Parquet, many at a time.

A file whose values have the declared types is read by Arrow. From the first value that has another
type, the rest is read line by line, so that only the lines that do not fit are refused.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from pyarrow import types

from nilometer.kernels.read_times import INSTANT, SECONDS, form_of, read_times
from nilometer.sensors.stream_type import BadReadingError
from nilometer.sensors.types.json_fields import parse_json
from nilometer.sensors.types.text_cells import CsvLines, cell_reader, match_header

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
    """How files are parsed."""

    columns: pa.Schema
    name: str | None = None
    """csv, json or parquet; None: determined by the file's name."""
    header: bool = True
    separator: str = ","

    def of(self, path: Path) -> str:
        return self.name or _ENDINGS.get(path.suffix.lower(), "csv")


@dataclass(frozen=True)
class Piece:
    """Rows of a file that fit, and what does not; `end`: the number of file rows so far."""

    rows: pa.RecordBatch
    end: int
    bad: list[BadReadingError] = field(default_factory=list)
    places: Sequence[int] | None = None
    """Which rows of the file these are, counted from 1; None: the last ones before the end."""

    def ends(self) -> list[int]:
        """The number of file rows up to each row."""
        if not len(self.rows):
            return []
        places = self.places or range(self.end - len(self.rows) + 1, self.end + 1)
        return [*places[:-1], self.end]


def read_pieces(path: Path, form: FileFormat, skip: int) -> Iterator[Piece]:
    """The rows of a file after the first `skip`, except lines with too few or too many cells."""
    kind, end = form.of(path), 0
    bad: list[BadReadingError] = []
    try:
        for batch in _arrow_batches(path, kind, form, bad):
            start, end = end, end + len(batch)
            if end > skip:
                first = max(0, skip - start)
                fitted = _fit(batch.slice(first), form, kind == "csv")
                places = [start + first + place for place in fitted.places or ()]
                yield Piece(fitted.rows, end, [*bad, *fitted.bad], places)
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
                file.seek(-len(line), 1)  # the end of the line is still missing
            yield lines.take()
            if not line and not follow:
                return


class _Lines:
    """Collects the lines that fit, and those that do not."""

    def __init__(self, path: Path, form: FileFormat) -> None:
        self._form = form
        self._csv = CsvLines(form.columns, form.separator) if form.of(path) == "csv" else None
        self._wants_header = form.header and self._csv is not None
        self._end = 0
        self._values: list[dict[str, Any]] = []
        self._places: list[int] = []
        self._bad: list[BadReadingError] = []

    @property
    def count(self) -> int:
        return len(self._values) + len(self._bad)

    def add(self, line: bytes, skip: int) -> None:
        """Read a line; the first `skip` lines are only counted."""
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
                self._places.append(self._end)
        except BadReadingError as error:
            if self._end >= skip:
                self._bad.append(error)

    def take(self) -> Piece:
        """What has been collected since the last call."""
        rows = pa.RecordBatch.from_pylist(self._values, schema=self._form.columns)
        piece = Piece(rows, self._end, self._bad, self._places)
        self._values, self._bad, self._places = [], [], []
        return piece

    def _typed(self, value: Any, text: str) -> dict[str, Any]:
        """A row whose values fit their columns."""
        row = parse_json(value) if isinstance(value, str) else value
        if not isinstance(row, dict):
            raise BadReadingError("not a JSON object", text[:4096])
        return _typed_row(row, self._form, text)


def _typed_row(row: Mapping[str, Any], form: FileFormat, text: str) -> dict[str, Any]:
    """The declared columns of a row; raises BadReadingError if a value does not fit its column."""
    return {column.name: _scalar(row.get(column.name), column, text) for column in form.columns}


def _scalar(value: Any, column: pa.Field, text: str) -> Any:
    try:
        if types.is_timestamp(column.type) and value is not None:
            return _instant(value, column, text)
        return pa.scalar(value, column.type).as_py()
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as error:
        raise BadReadingError(
            f"column {column.name} is {column.type}, got {value!r:.60}", text[:4096]
        ) from error


def _instant(value: Any, column: pa.Field, text: str) -> datetime:
    try:
        micros = (form_of(column) or SECONDS).read(value)
    except ValueError as error:
        reason = f"column {column.name}: {error}: {value!r:.60}"
        raise BadReadingError(reason, text[:4096]) from error
    instant: datetime = pa.scalar(micros, pa.int64()).cast(INSTANT).as_py()
    return instant


def _arrow_batches(
    path: Path, kind: str, form: FileFormat, bad: list[BadReadingError]
) -> Iterator[pa.RecordBatch]:
    if kind == "parquet":
        file = pyarrow.parquet.ParquetFile(path)
        names = [name for name in form.columns.names if name in file.schema_arrow.names]
        yield from file.iter_batches(batch_size=1 << 16, columns=names)
        file.close()
    elif path.stat().st_size == 0:
        return
    elif kind == "csv":
        yield from _csv_batches(path, form, bad)
    else:
        yield from _json_batches(path, form)


def _json_batches(path: Path, form: FileFormat) -> Iterator[pa.RecordBatch]:
    """Instants may be text or numbers: later blocks should have what the first one has."""
    read = pyarrow.json.ReadOptions(use_threads=False, block_size=_BLOCK)
    has_begun = False
    for kind in (pa.string(), pa.int64(), pa.float64()):
        parse = pyarrow.json.ParseOptions(
            explicit_schema=_as_read(form.columns, kind), unexpected_field_behavior="ignore"
        )
        try:
            with pyarrow.json.open_json(path, read, parse) as reader:
                for batch in reader:
                    has_begun = True
                    yield batch
            return
        except pa.ArrowInvalid:
            if has_begun or kind == pa.float64():
                raise


def _csv_batches(
    path: Path, form: FileFormat, bad: list[BadReadingError]
) -> Iterator[pa.RecordBatch]:
    def refuse(row: pyarrow.csv.InvalidRow) -> str:
        reason = f"a line of {row.actual_columns} cells where {row.expected_columns} were expected"
        bad.append(BadReadingError(reason, (row.text or "")[:4096]))
        return "skip"

    names, lines = _header(path, form) if form.header else (form.columns.names, 0)
    read = pyarrow.csv.ReadOptions(
        use_threads=False, block_size=_BLOCK, column_names=names, skip_rows=lines
    )
    parse = pyarrow.csv.ParseOptions(delimiter=form.separator, invalid_row_handler=refuse)
    convert = pyarrow.csv.ConvertOptions(
        column_types=_as_read(form.columns, pa.string()),
        include_columns=[name for name in form.columns.names if name in names],
        strings_can_be_null=False,
        null_values=[""],
    )
    with pyarrow.csv.open_csv(path, read, parse, convert) as reader:
        yield from reader


def _header(path: Path, form: FileFormat) -> tuple[list[str], int]:
    """The column names in the first line, and how many lines it takes."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=form.separator)
        return match_header(next(reader, []), form.columns.names), reader.line_num


def _as_read(columns: pa.Schema, instants: pa.DataType) -> pa.Schema:
    """Instants are read as text or numbers: Arrow accepts text either with or without a zone."""
    return pa.schema(
        [
            pa.field(one.name, instants if types.is_timestamp(one.type) else one.type)
            for one in columns
        ]
    )


def _fit(batch: pa.RecordBatch, form: FileFormat, is_text: bool) -> Piece:
    """The declared columns of rows, NULL where the file has no column of that name.

    Where everything is text, a number is text, too.
    """
    try:
        columns = [_fit_column(batch, column) for column in form.columns]
        return Piece(pa.RecordBatch.from_arrays(columns, schema=form.columns), len(batch))
    except (pa.ArrowException, ArithmeticError):
        return _fit_rows(batch, form, is_text)


def _fit_column(batch: pa.RecordBatch, column: pa.Field) -> pa.Array:
    if column.name not in batch.schema.names:
        return pa.nulls(len(batch), column.type)
    values = batch.column(column.name)
    if types.is_timestamp(column.type):
        return read_times(values, form_of(column))
    return values.cast(column.type)


def _fit_rows(batch: pa.RecordBatch, form: FileFormat, is_text: bool) -> Piece:
    """The same, row by row."""
    rows, bad, places = [], [], []
    cells = {one.name: cell_reader(one) for one in form.columns if types.is_timestamp(one.type)}
    for place, row in enumerate(batch.to_pylist(), 1):
        text = json.dumps(row, default=str)[:4096]
        if is_text:
            row |= {name: read(row.get(name) or "") for name, read in cells.items()}
        try:
            rows.append(_typed_row(row, form, text))
            places.append(place)
        except BadReadingError as error:
            bad.append(error)
    fitted = pa.RecordBatch.from_pylist(rows, schema=form.columns)
    return Piece(fitted, len(batch), bad, places)
