"""EXISTS and IN (SELECT …): rows that have a partner, or that have none."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.scalars import place_of


@dataclass(frozen=True)
class ExistsTest:
    """A condition of WHERE: the query has rows, or has none; with IN, rows of this value."""

    tree: exp.Expr
    query: exp.Expr
    negated: bool
    value: exp.Expr | None = None


def read_exists(condition: exp.Expr, sql: str) -> ExistsTest | None:
    """The test that a condition is, if it is one."""
    negated = isinstance(condition, exp.Not)
    inner = condition.this.unnest() if negated else condition
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Query):
        return ExistsTest(condition, inner.this, negated != bool(inner.args.get("negate")))
    if not isinstance(inner, exp.In) or inner.args.get("query") is None:
        return None
    if negated or inner.args.get("negate"):
        raise SqlError(
            "NOT IN (SELECT …) is not part of this dialect: one NULL would empty the answer",
            place=place_of(condition, sql),
            hint="write NOT EXISTS (SELECT … WHERE …)",
        )
    return ExistsTest(condition, inner.args["query"], False, inner.this)
