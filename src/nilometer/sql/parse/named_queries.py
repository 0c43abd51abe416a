"""The named queries of WITH."""

from __future__ import annotations

from sqlglot import exp

from nilometer.errors import AmbiguousNameError, SqlError
from nilometer.sql.parse.places import place_of


def named_queries(tree: exp.Expr, sql: str) -> dict[str, exp.CTE]:
    """The queries by lower-case name; raises an error if two share a name."""
    clause = tree.args.get("with_")
    if clause is None:
        return {}
    if clause.args.get("recursive"):
        raise SqlError(
            "recursive queries are not supported",
            place=place_of(clause, sql),
            hint="numbers are UNNEST(sequence(1, 5)) AS u (n); a stream joined with itself, with "
            "a window, finds the next step; chains of rows are found by MATCH_RECOGNIZE",
        )
    queries: dict[str, exp.CTE] = {}
    for query in clause.expressions:
        name = query.alias.lower()
        if name in queries:
            raise AmbiguousNameError(
                f"two queries of WITH are named {query.alias}",
                place=place_of(query.args["alias"], sql),
                hint="rename one of them",
            )
        queries[name] = query
    return queries
