"""In which order rows are shown: changes as time passes, answers as ORDER BY says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField
from sqlglot import exp

from nilometer.commands.tables import Heading, Rows
from nilometer.sql.statements import read_query

_WITHOUT_ORDER: Final = ("map<", "variant", "interval", "geo")


@dataclass(frozen=True, slots=True)
class Key:
    """A column, by its place, and which of its values stand first."""

    column: int
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class RowOrder:
    """By which columns rows are ordered, and which of all columns hold numbers."""

    keys: tuple[Key, ...]
    numbers: tuple[bool, ...]

    def sort(self, rows: Rows) -> list[tuple[str | None, ...]]:
        """Rows of text in this order."""
        found = list(rows)
        for key in reversed(self.keys):
            known = [row for row in found if row[key.column] is not None]
            known.sort(key=lambda row: self._value(row, key.column), reverse=key.descending)
            nulls = [row for row in found if row[key.column] is None]
            found = nulls + known if key.nulls_first else known + nulls
        return found

    def sort_frame(self, answer: DataFrame) -> DataFrame:
        """A DataFrame in this order, as one part."""
        fields = answer.schema.fields
        numbered = answer.toDF(*(f"c{i}" for i in range(len(fields))))
        chosen = [_column(key) for key in self.keys if _has_order(fields[key.column])]
        return _sorted(numbered, chosen).toDF(*answer.columns)

    def _value(self, row: tuple[str | None, ...], column: int) -> float | str:
        text = row[column] or ""
        return float(text) if self.numbers[column] else text


def read_order(sql: str, headings: Sequence[Heading]) -> RowOrder:
    """The order of an answer: what ORDER BY says of its columns, then all columns.

    >>> headings = [Heading("store"), Heading("n", is_number=True)]
    >>> order = read_order("SELECT store, n FROM s ORDER BY n DESC LIMIT 3", headings)
    >>> order.sort([("x", "9"), ("y", "10"), ("a", "9")])
    [('y', '10'), ('a', '9'), ('x', '9')]
    """
    said = read_query(sql).tree.args.get("order")
    stated = [_key(one, headings) for one in said.expressions] if said is not None else []
    every = [Key(column) for column in range(len(headings))]
    return RowOrder(
        tuple(key for key in [*stated, *every] if key is not None),
        tuple(heading.is_number for heading in headings),
    )


def in_order_of_time(changelog: DataFrame) -> DataFrame:
    """Changes as time passes, what goes before what comes."""
    fields = changelog.schema.fields[:-2]
    names = [f"c{i}" for i in range(len(fields))]
    numbered = changelog.toDF(*names, "_time", "_diff")
    others = [name for name, one in zip(names, fields, strict=True) if _has_order(one)]
    keys = [F.col(name) for name in ("_time", "_diff", *others)]
    return _sorted(numbered, keys).toDF(*changelog.columns)


def _sorted(rows: DataFrame, keys: list[Column]) -> DataFrame:
    """All rows in one part: to sort several, Spark would compute them twice."""
    return rows.repartition(1).sortWithinPartitions(*keys) if keys else rows


def _key(ordered: exp.Expr, headings: Sequence[Heading]) -> Key | None:
    """What an item of ORDER BY says, if it is a column of the answer or its number."""
    wanted = ordered.this
    names = [heading.name.lower() for heading in headings]
    if isinstance(wanted, exp.Literal) and wanted.is_int and 0 < int(wanted.name) <= len(names):
        column = int(wanted.name) - 1
    elif isinstance(wanted, exp.Column) and wanted.name.lower() in names:
        column = names.index(wanted.name.lower())
    else:
        return None
    return Key(column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))


def _column(key: Key) -> Column:
    column = F.col(f"c{key.column}")
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def _has_order(field: StructField) -> bool:
    return not any(kind in field.dataType.simpleString() for kind in _WITHOUT_ORDER)
