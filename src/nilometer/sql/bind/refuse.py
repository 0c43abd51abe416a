"""Refusals of what the dialect does not have, each with its position."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.bind.refuse_entry import SAMPLE, no_sample
from nilometer.sql.parse.placed_parser import operator_place
from nilometer.sql.parse.places import place_of

_ALLOWED: Final = {
    "this",
    "expressions",
    "from_",
    "joins",
    "where",
    "windows",
    "emit",
    "with_",
    "distinct",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "expression",
    "subqueries",
}
_ELSEWHERE: Final = {
    "kind": "SELECT AS STRUCT",
    "laterals": "LATERAL VIEW",
    "locks": "FOR UPDATE",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "pivots": "PIVOT",
    "by_name": "BY NAME",
    "connect": "START WITH",
    "hint": "a hint inside a statement",
    "operation_modifiers": "this modifier of SELECT",
}
_COLLECT: Final = "collect the rows, and do the rest in Spark"
_LIST: Final = "write JOIN … ON, or list the streams in FROM"
_AS_OF: Final = (
    "the last B before each A is FROM A, B [PARTITION BY k ROWS 1] DWINDOW(B, A) = 1 DAY "
    "WHERE A.k = B.k"
)
_HINTS: Final = {
    "laterals": "explode before the stream is created, or explode the result",
    "qualify": "QUALIFY filters by the results of OVER; put other conditions in WHERE",
    "by_name": "list the columns in the same order on both sides",
    "locks": "leave it out: streams are read-only",
    "hint": "leave it out: a hint must follow the first SELECT of a statement",
}


def refuse_query(tree: exp.Expr, sql: str) -> None:
    """Refuse queries, or clauses of queries, that cannot be run."""
    if isinstance(tree, exp.Select | exp.Subquery | exp.SetOperation):
        _refuse_clauses(tree, sql)
    if isinstance(tree, exp.Subquery | exp.SetOperation):
        return
    place = place_of(tree, sql)
    if not isinstance(tree, exp.Select):
        raise SqlError("expected a SELECT", place=place)
    if tree.args.get("from_") is None:
        raise SqlError("a query needs a FROM", place=place, hint="name the streams that it reads")
    for join in tree.args.get("joins") or ():
        _refuse_join(join, sql)


def _refuse_clauses(tree: exp.Expr, sql: str) -> None:
    for name, value in tree.args.items():
        if not value or name in _ALLOWED:
            continue
        clause = value[0] if isinstance(value, list) else value
        place = place_of(clause if isinstance(clause, exp.Expr) else tree, sql)
        if isinstance(tree, exp.SetOperation):
            place = operator_place(tree, sql)
        if name == SAMPLE:
            raise no_sample(place)
        raise SqlError(
            f"{_ELSEWHERE.get(name, name.upper())} is not supported",
            place=place,
            hint=_HINTS.get(name, _COLLECT),
        )


def _refuse_join(join: exp.Join, sql: str) -> None:
    place = place_of(join, sql)
    kind, method = (str(join.args.get(part) or "") for part in ("kind", "method"))
    if kind.upper() in ("SEMI", "ANTI"):  # where possible, they have become conditions of WHERE
        raise SqlError(
            f"{kind.upper()} JOIN cannot be combined with RIGHT or FULL JOIN",
            place=place,
            hint="put it into a subquery: FROM (SELECT … SEMI JOIN …) a RIGHT JOIN …",
        )
    known = {"this", "on", "using", "kind", "side", "method"}
    extras = [name for name, value in join.args.items() if value and name not in known]
    is_known = kind.upper() in ("", "INNER", "CROSS", "OUTER") and method in ("", "NATURAL")
    if extras or not is_known:
        name = " ".join(filter(None, (method, kind, *extras))).upper()
        hint = _AS_OF if method.upper() == "ASOF" else _LIST
        raise SqlError(f"{name} JOIN is not supported", place=place, hint=hint)
