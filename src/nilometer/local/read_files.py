"""Files as Arrow tables, with the columns, types and values that Spark reads from them.

What might be read differently is refused (`OnlySparkError`): the statement is then left to Spark.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import InputError, OnlySparkError
from nilometer.kernels.expression_types import is_number, type_name
from nilometer.kernels.read_times import read_times as read_formed
from nilometer.local.find_files import FileKind, Files
from nilometer.local.read_csv import read_csv, read_header
from nilometer.local.read_json import read_lines, rows_as_table, type_of_rows
from nilometer.local.text_columns import hold_times, read_texts, read_times, type_of_texts
from nilometer.model.names import find_column
from nilometer.model.time_forms import TimeForm, WrittenTimes
from nilometer.sql.declare import without_unit
from nilometer.sql.plan.types import TIMESTAMP


@dataclass(frozen=True)
class FileReader:
    """Reads files of one stream or table, always with the columns of the first files."""

    name: str
    kind: FileKind
    schema: pa.Schema
    """The columns as they are in the files."""
    times: tuple[int, ...] = ()
    """The positions of the columns with a stream's times."""
    form: TimeForm | None = None
    """The format of the times, if it was declared."""

    def read(self, paths: Sequence[Path]) -> pa.Table:
        """The rows of some files."""
        with _named(self.name):
            return self._with_times(_read(self.kind, paths, self.schema))

    def _with_times(self, rows: pa.Table) -> pa.Table:
        """The rows, with their times as instants."""
        for place in self.times:
            rows = self._with_time(rows, place)
        return rows

    def _with_time(self, rows: pa.Table, place: int) -> pa.Table:
        field, column = rows.schema.field(place), rows.column(place)
        if self.form is not None and not pat.is_temporal(field.type):
            times = self._formed(field.name, column)
        elif pat.is_string(field.type):
            if column.null_count < len(column) and not hold_times(column):
                raise OnlySparkError(
                    f"not all values of column {field.name} are times in ISO 8601 format"
                )
            times = read_times(column)
        elif pat.is_date(field.type) or pat.is_timestamp(field.type):
            times = column.cast(pa.timestamp("us")).cast(TIMESTAMP)
        elif not is_number(field.type):
            return rows
        else:
            value = next((one for one in column.to_pylist() if one is not None), None)
            raise without_unit(self.name, field.name, type_name(field.type), value)
        return rows.set_column(place, pa.field(field.name, TIMESTAMP), times)

    def _formed(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Times in the declared format; what may be read in two ways is left to Spark."""
        is_text = bool(pat.is_string(column.type))
        if is_text is not isinstance(self.form, WrittenTimes) or pat.is_floating(column.type):
            raise OnlySparkError(f"not all values of column {name} are times in the declared form")
        try:
            return pa.chunked_array(
                [read_formed(one, self.form) for one in column.chunks], TIMESTAMP
            )
        except pa.ArrowInvalid:
            raise OnlySparkError(
                f"not all values of column {name} are times in the declared form"
            ) from None


def read_files(
    name: str,
    files: Files,
    time: str | None = None,
    form: TimeForm | None = None,
    end: str | None = None,
) -> tuple[FileReader, pa.Table]:
    """All rows that exist now, and a reader for more."""
    times = tuple(one for one in (time, end) if one is not None)
    with _named(name):
        rows = _read(files.kind, files.paths(), None, times)
        places = tuple(find_column(name, rows.schema.names, one) for one in times)
        reader = FileReader(name, files.kind, rows.schema, places, form)
        return reader, reader._with_times(rows)


def _read(
    kind: FileKind, paths: Sequence[Path], schema: pa.Schema | None, times: Sequence[str] = ()
) -> pa.Table:
    """Rows in these columns, or else in those of the files, with a stream's times unparsed."""
    if kind is FileKind.PARQUET:
        from nilometer.local.read_parquet import read_parquet  # noqa: PLC0415  takes its time

        return read_parquet(paths, schema)
    contents = [_content(path) for path in paths]
    if not contents:
        raise OnlySparkError("they are empty")
    return _json(contents, schema) if kind is FileKind.JSON else _csv(contents, schema, times)


def _csv(contents: Sequence[bytes], schema: pa.Schema | None, times: Sequence[str]) -> pa.Table:
    names = read_header(contents[0]) if schema is None else schema.names
    if any(read_header(content) != names for content in contents):
        raise OnlySparkError("the files have different columns")
    texts = pa.concat_tables([read_csv(content, names) for content in contents])
    is_given = schema is not None
    if schema is None:
        kinds = [_type(n, c, times) for n, c in zip(names, texts.columns, strict=True)]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
    columns = [
        read_texts(field.name, column, field.type, is_known=not is_given)
        for field, column in zip(schema, texts.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _type(name: str, column: pa.ChunkedArray, times: Sequence[str]) -> pa.DataType:
    """The type of a column; a stream's times may be written differently in every row."""
    kind = type_of_texts(name, column)
    is_time = name.lower() in [one.lower() for one in times]
    return pa.string() if is_time and pat.is_temporal(kind) else kind


def _json(contents: Sequence[bytes], schema: pa.Schema | None) -> pa.Table:
    rows = [row for content in contents for row in read_lines(content)]
    return rows_as_table(rows, type_of_rows(rows) if schema is None else pa.struct(list(schema)))


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.name.lower().endswith(".gz") else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read the file {path}", detail=str(error)) from None


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the stream or table in errors that leave it to Spark."""
    try:
        yield
    except OnlySparkError as error:
        message = f"the files of {name} can only be read by Spark: {error.message}"
        raise OnlySparkError(message, detail=error.detail, hint=error.hint) from None
    except pa.ArrowException as error:
        raise OnlySparkError(
            f"the files of {name} are for Spark", detail=str(error).splitlines()[0][:200]
        ) from None
