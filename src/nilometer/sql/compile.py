"""From a statement to its plan."""

from __future__ import annotations

from dataclasses import replace

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.bind import bind
from nilometer.sql.catalog import Catalog
from nilometer.sql.plan import JoinPlan
from nilometer.sql.rules import apply_rules
from nilometer.sql.statements import Statement


def compile_statement(statement: Statement, catalog: Catalog, buckets: int) -> JoinPlan:
    """The plan that runs a statement in so many buckets."""
    try:
        return apply_rules(replace(bind(statement, catalog), buckets=buckets))
    except RecursionError:
        raise SqlSyntaxError(
            "the statement is nested too deeply",
            place=Place(statement.sql, 0, 1),
            hint="take parts of it into subqueries or columns of their own",
        ) from None
