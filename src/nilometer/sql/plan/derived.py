"""The rows of a node as a relation, so that other queries can name its columns."""

from __future__ import annotations

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.catalog import Relation
from nilometer.sql.expressions.scalars import ColumnRef, column
from nilometer.sql.plan.changes_plan import Node
from nilometer.sql.plan.join_plan import Source


def derived_source(name: str, node: Node, place: Place, timed: bool = False) -> Source:
    """A source whose rows are those of a node; the last column may be their time."""
    names: list[str] = []
    for one in node.columns:
        names.append(one.name if one.name not in names else f"{one.name} ({len(names) + 1})")
    relation = Relation(
        name,
        tuple(names),
        tuple(one.kind for one in node.columns),
        time=names[-1] if timed else None,
        is_table=not timed,
    )
    return Source(name, relation, place, node=node)


def columns_of_source(source: Source) -> dict[str, exp.Expr]:
    """The columns of a source, by their names."""
    return {name: column(ColumnRef(source.name, name)) for name in source.relation.columns}
