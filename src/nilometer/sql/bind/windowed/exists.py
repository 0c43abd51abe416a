"""EXISTS and IN (SELECT …) as conditions: rows that have a partner, or that have none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from nilometer.sql.rewrite.subqueries import SubqueryUse, is_tested


@dataclass(frozen=True)
class ExistsTest:
    """A condition of WHERE: a subquery has matching rows, or has none."""

    tree: exp.Expr
    query: exp.Expr
    negated: bool
    asked: SubqueryUse = SubqueryUse.ROWS
    value: exp.Expr | None = None
    """The value before IN."""


def read_exists(condition: exp.Expr) -> Iterator[ExistsTest]:
    """The tests that a condition consists of, if it is nothing else."""
    if not is_tested(condition):
        return
    negated = isinstance(condition, exp.Not)
    inner = condition.this.unnest() if negated else condition
    negated = negated != bool(inner.args.get("negate"))
    if isinstance(inner, exp.Exists):
        yield ExistsTest(condition, inner.this, negated)
        return
    query, value = inner.args["query"], inner.this
    yield ExistsTest(condition, query, negated, SubqueryUse.EQUAL, value)
    if negated:  # a row that may be equal leaves NOT IN open, which is not true
        yield ExistsTest(condition, query, negated, SubqueryUse.UNKNOWN, value)
