"""Answers as text: every column, or every row, written out by Spark, then taken from workers."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NumericType,
    StructType,
    TimestampType,
    VariantType,
)

from nilometer.commands.lines import TAKEN, WRITTEN, TakeRows, WriteLines, read_taken
from nilometer.commands.options import Format
from nilometer.commands.tables import LONGEST_VALUE, Heading
from nilometer.errors import InputError
from nilometer.operators.change_operator import DIFF, TIME
from nilometer.spark.ship import ship_function

_JSON: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_NESTED: Final = (ArrayType, MapType, StructType, VariantType)


@dataclass(frozen=True)
class Taken:
    """The first rows of an answer as text, and how many it has."""

    rows: list[tuple[str | None, ...]]
    total: int


def take_rows(answer: DataFrame, limit: int) -> Taken:
    """The first rows of an answer, in whatever order it has."""
    work = TakeRows(limit, LONGEST_VALUE + 1)
    parts = _as_text(answer, zoned=False).mapInArrow(ship_function(work), TAKEN).collect()
    return Taken(
        read_taken([part["body"] for part in parts], limit), sum(part["rows"] for part in parts)
    )


@dataclass(frozen=True)
class Lines:
    """The rows of an answer as lines, in files."""

    files: list[str]

    def copy_to(self, out: BinaryIO) -> None:
        """Write all lines."""
        for name in self.files:
            with open(name, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)


@contextmanager
def made_lines(answer: DataFrame, form: Format) -> Iterator[Lines]:
    """The rows of an answer as CSV or JSON lines, as long as the context lasts."""
    plain = form is Format.JSONL
    lines = _as_json(answer) if plain else _as_text(answer, zoned=True)
    with tempfile.TemporaryDirectory(prefix="nilometer-answer-") as folder:
        work = WriteLines(folder, plain)
        written = lines.mapInArrow(ship_function(work), WRITTEN).collect()
        yield Lines([part["file"] for part in written])


def header(columns: Sequence[str], form: Format) -> bytes:
    """The line before all others, where there is one."""
    if form is not Format.CSV:
        return b""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue().encode()


def headings_of(answer: DataFrame) -> list[Heading]:
    """The columns of an answer as a table shows them."""
    changes = is_changelog(answer)
    fields = answer.schema.fields
    return [
        Heading(
            one.name,
            is_number=isinstance(one.dataType, NumericType),
            is_time=isinstance(one.dataType, TimestampType),
            is_change=changes and place == len(fields) - 1,
        )
        for place, one in enumerate(fields)
    ]


def is_changelog(answer: DataFrame) -> bool:
    """Whether rows come and go; else they are only added."""
    return answer.columns[-2:] == [TIME, DIFF]


def require_changing(answer: DataFrame, option: str) -> None:
    """Refuse an option that is for answers that change."""
    if not is_changelog(answer):
        raise InputError(
            f"{option} is for answers that change",
            detail="this query adds rows and never takes one back",
            hint=f"leave {option} out; or give every stream a window and end the statement with "
            "EMIT CHANGES",
        )


def require_names(answer: DataFrame, form: Format) -> None:
    """Refuse two columns of one name where a name stands for one value."""
    if form in (Format.TABLE, Format.CSV):
        return
    lowered = [name.lower() for name in answer.columns]
    for name in answer.columns:
        if lowered.count(name.lower()) > 1:
            raise InputError(
                f"two columns are named {name}, and {form} tells columns by name",
                hint=f"give them aliases: SELECT A.{name} AS a_{name}, B.{name} AS b_{name}"
                if name.isidentifier()
                else f"give each an alias: {name} AS a",
            )


def _as_text(answer: DataFrame, *, zoned: bool) -> DataFrame:
    """Columns c0, c1, … of text; `zoned`: times as 2026-01-31T12:00:00Z."""
    names = [f"c{i}" for i in range(len(answer.columns))]
    plain = answer.toDF(*names)
    kinds = [field.dataType for field in answer.schema.fields]
    columns = [_text(F.col(n), k, zoned).alias(n) for n, k in zip(names, kinds, strict=True)]
    return plain.select(*columns)


def _text(column: Column, kind: DataType, zoned: bool) -> Column:
    if isinstance(kind, _NESTED):
        return F.to_json(column, _JSON)
    if isinstance(kind, BinaryType):
        return F.base64(column)
    text = column.cast("string")
    if zoned and isinstance(kind, TimestampType):
        return F.concat(F.replace(text, F.lit(" "), F.lit("T")), F.lit("Z"))
    return text


def _as_json(answer: DataFrame) -> DataFrame:
    return answer.select(F.to_json(F.struct("*"), _JSON).alias("line"))
