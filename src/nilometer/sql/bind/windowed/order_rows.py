"""ORDER BY … LIMIT: the order of rows, and how many of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import SqlError, SqlTypeError
from nilometer.kernels.expression_types import type_name
from nilometer.operators.change_specs import SortKey
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.sql.bind.windowed.build_nodes import drop_columns
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.parse.find_names import find_name
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.put_distinct_on import CHOOSES
from nilometer.sql.plan.changes_plan import Node, Operation, names_of, types_of
from nilometer.sql.plan.join_plan import Item


@dataclass(frozen=True)
class Ordering:
    """The columns by which rows are ordered, some of them after those of the query."""

    keys: tuple[SortKey, ...]
    terms: tuple[exp.Ordered, ...]
    hidden: tuple[Item, ...]
    limit: int
    offset: int

    def apply(self, node: Node, sql: str) -> Node:
        """The first rows of a node, without the hidden columns."""
        for key, term in zip(self.keys, self.terms, strict=True):
            kind = node.columns[key.column].kind
            if pat.is_nested(kind):
                raise SqlTypeError(
                    "rows cannot be ordered by this value",
                    place=place_of(term, sql),
                    detail=f"got {type_name(kind)}",
                    hint="order by single fields or elements",
                )
        kinds = types_of(node.columns)
        spec = TopRowsSpec(self.keys, self.limit, self.offset, kinds)
        top = Operation(spec, (node,), names_of(node.columns))
        return drop_columns(top, len(node.columns) - len(self.hidden))


def check_limits(tree: exp.Expr, sql: str) -> None:
    """Refuse ORDER BY and LIMIT without each other."""
    order, limit = tree.args.get("order"), tree.args.get("limit")
    clause = order or tree.args.get("offset")
    if limit is None and order is not None and CHOOSES in order.meta and clause is order:
        return
    if limit is None and clause is not None:
        name = "OFFSET" if order is None else "ORDER BY"
        raise SqlError(
            f"{name} needs a LIMIT: a changing answer has no order, but it can keep the first rows",
            place=place_of(clause, sql),
            hint="add LIMIT 10, or leave it out and sort the rows that you read",
        )
    if limit is not None and order is None:
        raise SqlError(
            "LIMIT needs an ORDER BY, which determines the rows to keep",
            place=place_of(limit, sql),
            hint="write ORDER BY … LIMIT 10",
        )


def read_ordering(
    tree: exp.Expr, items: Sequence[Item], bind: Callable[[exp.Expr], Scalar], sql: str
) -> Ordering | None:
    """The order of a query with these columns; `bind` binds other expressions."""
    order, limit = tree.args.get("order"), tree.args.get("limit")
    offset = tree.args.get("offset")
    if order is None or limit is None:
        return None
    hidden: list[Item] = []
    keys = []
    for term in order.expressions:
        place = _own_column(term, items, sql)
        if place is None:
            value = bind(term.this)
            place = _same(value, items)
            if place is None:
                place = len(items) + len(hidden)
                hidden.append(Item(str(value), value))
        descending = bool(term.args.get("desc"))
        keys.append(SortKey(place, descending, bool(term.args.get("nulls_first"))))
    return Ordering(
        tuple(keys),
        tuple(order.expressions),
        tuple(hidden),
        count_of(limit, "LIMIT", sql),
        0 if offset is None else count_of(offset, "OFFSET", sql),
    )


def _own_column(term: exp.Ordered, items: Sequence[Item], sql: str) -> int | None:
    """The position of the column that a term names or numbers, if any."""
    return own_column(term.this, [item.name for item in items], "ORDER BY", sql)


def own_column(tree: exp.Expr, names: Sequence[str], clause: str, sql: str) -> int | None:
    """The position of the list column that a name or a number refers to, if any."""
    if isinstance(tree, exp.Literal) and not tree.is_string:
        number = int(tree.name) if tree.name.isdecimal() else 0
        if not 1 <= number <= len(names):
            raise SqlError(
                f"{clause} must number a column of the SELECT list, from 1 to {len(names)}",
                place=place_of(tree, sql),
                detail=f"got {tree.name}",
            )
        return number - 1
    is_name = isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)
    if not is_name or tree.args.get("table"):
        return None
    name = find_name(tree.this, names)
    return None if name is None else list(names).index(name)


def _same(value: Scalar, items: Sequence[Item]) -> int | None:
    texts = [str(item.value) for item in items]
    return texts.index(str(value)) if str(value) in texts else None


def count_of(clause: exp.Expr, name: str, sql: str) -> int:
    """The number of rows in LIMIT or OFFSET."""
    literal = clause.args.get("expression")
    if isinstance(literal, exp.Literal) and not literal.is_string and literal.name.isdecimal():
        return int(literal.name)
    raise SqlError(
        f"{name} needs a number of rows", place=place_of(clause, sql), hint=f"write {name} 10"
    )
