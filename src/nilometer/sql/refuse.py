"""What the dialect does not have, and what it has but cannot run yet, each with its place."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import NotYetError, SqlError
from nilometer.sql.scalars import place_of

_ALLOWED: Final = {"expressions", "from_", "joins", "where", "windows", "emit", "with_", "kind"}
_NOT_YET: Final = {
    "distinct": "SELECT DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
}
_COLLECT: Final = "collect the rows, and let Spark do the rest"


def refuse_query(tree: exp.Expr, sql: str) -> None:
    """Refuse queries, or clauses of queries, that cannot be run."""
    place = place_of(tree, sql)
    if isinstance(tree, exp.SetOperation):
        raise NotYetError(
            f"{tree.key.upper()} cannot be run yet", place=place, hint="run both queries apart"
        )
    if not isinstance(tree, exp.Select):
        raise SqlError("expected a SELECT", place=place)
    _refuse_clauses(tree, sql)
    if tree.args.get("from_") is None:
        raise SqlError("a query needs a FROM", place=place, hint="name the streams that it reads")
    for join in tree.args.get("joins") or ():
        _refuse_join(join, sql)
    emit = tree.args.get("emit")
    if emit is not None and emit.args["kind"] == "CHANGES":
        raise NotYetError(
            "EMIT CHANGES cannot be run yet", place=place_of(emit, sql), hint="leave it out"
        )
    if emit is not None and emit.args.get("every") is not None:
        raise SqlError("EVERY belongs to EMIT CHANGES", place=place_of(emit, sql))


def _refuse_clauses(tree: exp.Select, sql: str) -> None:
    for name, value in tree.args.items():
        if not value or (name in _ALLOWED and name != "kind"):
            continue
        place = place_of(value, sql) if isinstance(value, exp.Expr) else place_of(tree, sql)
        if name in _NOT_YET:
            raise NotYetError(f"{_NOT_YET[name]} cannot be run yet", place=place, hint=_COLLECT)
        raise SqlError(f"{name.upper()} is not part of this dialect", place=place)


def _refuse_join(join: exp.Join, sql: str) -> None:
    place = place_of(join, sql)
    side, kind, method = (str(join.args.get(part) or "") for part in ("side", "kind", "method"))
    if side or kind.upper() in ("OUTER", "SEMI", "ANTI"):
        raise NotYetError(
            f"{' '.join(filter(None, (side, kind))).upper()} JOIN cannot be run yet",
            place=place,
            hint="write JOIN … ON, or list the streams in FROM",
        )
    known = {"this", "on", "using", "kind", "side", "method"}
    extras = [name for name, value in join.args.items() if value and name not in known]
    if method or extras or kind.upper() not in ("", "INNER", "CROSS"):
        name = " ".join(filter(None, (method, kind, *extras))).upper()
        raise SqlError(f"{name} JOIN is not part of this dialect", place=place)
