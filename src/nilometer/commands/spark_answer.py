"""Answers that Spark computes: rows are written or taken where they are, in its workers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NumericType,
    StructType,
    TimestampType,
    VariantType,
)

from nilometer.commands.answers import FirstRows, is_changelog
from nilometer.commands.lines import TAKEN, WRITTEN, TakeRows, WriteLines, read_taken
from nilometer.commands.options import Format
from nilometer.commands.tables import LONGEST_VALUE, Heading
from nilometer.kernels.text_values import has_text
from nilometer.operators.change_operator import TIME
from nilometer.operators.change_specs import SortKey
from nilometer.spark.complete_frame import sort_frame
from nilometer.spark.ship import ship_function
from nilometer.spark.types import arrow_types

_JSON: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_NESTED: Final = (ArrayType, MapType, StructType, VariantType)


@dataclass(frozen=True)
class SparkAnswer:
    """Rows of a DataFrame."""

    frame: DataFrame

    @property
    def columns(self) -> Sequence[str]:
        return self.frame.columns

    @property
    def headings(self) -> list[Heading]:
        changes = is_changelog(self.columns)
        fields = self.frame.schema.fields
        return [
            Heading(
                one.name,
                is_number=isinstance(one.dataType, NumericType),
                is_time=isinstance(one.dataType, TimestampType),
                is_change=changes and place == len(fields) - 1,
            )
            for place, one in enumerate(fields)
        ]

    def take_rows(self, limit: int) -> FirstRows:
        work = TakeRows(limit, LONGEST_VALUE + 1)
        plain, _ = self._with_text()
        parts = plain.mapInArrow(ship_function(work), TAKEN).collect()
        return FirstRows(
            read_taken([part["body"] for part in parts], limit), sum(part["rows"] for part in parts)
        )

    @contextmanager
    def lines(self, form: Format) -> Iterator[FileLines]:
        plain, written = self._with_text()
        names = tuple(self.columns) if form is Format.JSONL else None
        with tempfile.TemporaryDirectory(prefix="nilometer-answer-") as folder:
            work = WriteLines(folder, names, written)
            files = plain.mapInArrow(ship_function(work), WRITTEN).collect()
            yield FileLines([part["file"] for part in files])

    def in_order_of_time(self) -> SparkAnswer:
        names = self.columns
        if is_changelog(names):
            keys = [SortKey(len(names) - 2), SortKey(len(names) - 1)]
        else:
            keys = [SortKey(names.index(TIME))] if TIME in names else []
        return SparkAnswer(sort_frame(self.frame, keys))

    def write_parquet(self, folder: Path) -> None:
        self.frame.write.parquet(str(folder))

    def _with_text(self) -> tuple[DataFrame, frozenset[int]]:
        """Columns c0, c1, … that workers can write; and which of them are already JSON."""
        fields = self.frame.schema.fields
        plain = self.frame.toDF(*(f"c{i}" for i in range(len(fields))))
        columns, written = [], set()
        for place, (field, kind) in enumerate(
            zip(fields, arrow_types(self.frame.schema), strict=True)
        ):
            column = F.col(f"c{place}")
            if kind is None or not has_text(kind):
                column = _spelled(column, field.dataType)
                if isinstance(field.dataType, _NESTED):
                    written.add(place)
            columns.append(column.alias(f"c{place}"))
        return plain.select(*columns), frozenset(written)


@dataclass(frozen=True)
class FileLines:
    """Lines in files."""

    files: list[str]

    def copy_to(self, out: BinaryIO) -> None:
        for name in self.files:
            with open(name, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)


def _spelled(column: Column, kind: DataType) -> Column:
    """Types without an Arrow form, as Spark spells them."""
    return F.to_json(column, _JSON) if isinstance(kind, _NESTED) else column.cast("string")
