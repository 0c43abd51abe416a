"""What a node holds as a relation, so that other queries can name its columns."""

from __future__ import annotations

from sqlglot import exp

from nilometer.errors import Place
from nilometer.sql.catalog import Relation
from nilometer.sql.changes_plan import Node
from nilometer.sql.plan import RESULT_TIME, Source
from nilometer.sql.scalars import ColumnRef, column


def derived_source(name: str, node: Node, place: Place) -> Source:
    """A source whose rows are those of a node; its last column may be their time."""
    names = tuple(one.name for one in node.columns)
    timed = RESULT_TIME.column in names
    relation = Relation(
        name,
        names,
        tuple(one.kind for one in node.columns),
        time=RESULT_TIME.column if timed else None,
        is_table=not timed,
    )
    return Source(name, relation, place, node=node)


def columns_of_source(source: Source) -> dict[str, exp.Expr]:
    """The columns of a source, by their names."""
    return {name: column(ColumnRef(source.name, name)) for name in source.relation.columns}
