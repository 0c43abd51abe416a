"""What a row is worth to a query that is too far behind to read all: an expression over one row."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.model.expressions import Argument, Expression
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.compile import compile_statement
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.expressions.compile_scalar import SubsetCompiler
from nilometer.sql.expressions.scalars import ColumnRef, Ref, quote_name
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.statements import read_query

_BEFORE: Final = "SELECT CAST(("
_HINT: Final = "write an expression over the columns of a row, such as shed_by = 'priority'"


def compile_utility(text: str, catalog: Catalog, relation: Relation) -> Expression:
    """The expression, over the columns of a relation, as a DOUBLE.

    Raises UnknownNameError if the relation lacks a column.
    """
    try:
        return _compile(text, catalog, relation)
    except SqlError as error:
        if error.place is not None:
            start, end = (
                min(max(0, place - len(_BEFORE)), len(text))
                for place in (error.place.start, error.place.end)
            )
            error.place = Place(text, start, end)
        raise


def _compile(text: str, catalog: Catalog, relation: Relation) -> Expression:
    if not text.strip():
        raise SqlError("expected an expression over one row", hint=_HINT)
    name = quote_name(relation.name)
    statement = read_query(f"{_BEFORE}{text}\n) AS DOUBLE) AS u FROM {name}")
    tree = statement.tree
    parts = {name for name, part in tree.args.items() if part}
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or len(parts) != 2:
        raise SqlError("expected one expression", detail=f"got {text}", hint=_HINT)
    (value,) = tree.expressions
    if next(aggregates_in(value, catalog.functions), None) or value.find(exp.Window, exp.Query):
        raise SqlError("expected an expression over one row", detail=f"got {text}", hint=_HINT)
    plan = compile_statement(statement, catalog, 1)
    if not isinstance(plan, JoinPlan) or len(plan.sources) != 1 or plan.sources[0].expansions:
        raise SqlError("expected an expression over one row", detail=f"got {text}", hint=_HINT)

    def argument(ref: Ref) -> Argument:
        if not isinstance(ref, ColumnRef) or ref.column not in relation.columns:
            raise SqlError("expected an expression over stored columns", detail=f"got {text}")
        return Argument(relation.columns.index(ref.column), ref.fields)

    subset = SubsetCompiler(statement.sql, argument, catalog.functions, catalog.zone)
    return subset.compile(plan.items[0].value.tree)
