"""The order of the rows of an answer that changes on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from nilometer.commands.tables import Heading, Rows
from nilometer.operators.change_specs import SortKey
from nilometer.sql.statements import read_query


@dataclass(frozen=True)
class RowOrder:
    """The columns that order rows, and which columns hold numbers."""

    keys: tuple[SortKey, ...]
    numbers: tuple[bool, ...]

    def sort(self, rows: Rows) -> list[tuple[str | None, ...]]:
        """Rows of text in this order."""
        ordered = list(rows)
        for key in reversed(self.keys):
            known = [row for row in ordered if row[key.column] is not None]
            known.sort(key=lambda row: self._value(row, key.column), reverse=key.descending)
            nulls = [row for row in ordered if row[key.column] is None]
            ordered = nulls + known if key.nulls_first else known + nulls
        return ordered

    def _value(self, row: tuple[str | None, ...], column: int) -> float | str:
        text = row[column] or ""
        return float(text) if self.numbers[column] else text


def read_order(sql: str, headings: Sequence[Heading]) -> RowOrder:
    """The order of an answer: the columns in ORDER BY, then all columns.

    >>> headings = [Heading("store"), Heading("n", is_number=True)]
    >>> order = read_order("SELECT store, n FROM s ORDER BY n DESC LIMIT 3", headings)
    >>> order.sort([("x", "9"), ("y", "10"), ("a", "9")])
    [('y', '10'), ('a', '9'), ('x', '9')]
    """
    order = read_query(sql).tree.args.get("order")
    stated = [_key(one, headings) for one in order.expressions] if order is not None else []
    every = [SortKey(column) for column in range(len(headings))]
    return RowOrder(
        tuple(key for key in [*stated, *every] if key is not None),
        tuple(heading.is_number for heading in headings),
    )


def _key(ordered: exp.Expr, headings: Sequence[Heading]) -> SortKey | None:
    """The sort key of an ORDER BY item, if it is a column of the answer or its number."""
    wanted = ordered.this
    names = [heading.name.lower() for heading in headings]
    if isinstance(wanted, exp.Literal) and wanted.is_int and 0 < int(wanted.name) <= len(names):
        column = int(wanted.name) - 1
    elif isinstance(wanted, exp.Column) and wanted.name.lower() in names:
        column = names.index(wanted.name.lower())
    else:
        return None
    return SortKey(column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))
