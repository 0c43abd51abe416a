"""Whether a query appends or its answer changes: decided from its outermost tree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.mining.registry import FunctionKind, kind_of
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.dialect import Emit
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.parse.over_calls import TableOverCall, TopCall
from nilometer.sql.parse.placed_parser import operator_place, written
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.window_call_parser import EndsCall, WindowCall
from nilometer.sql.rewrite.subqueries import subquery_columns

FOLDED = "folded"
"""Where a tree notes that it stands for the answer of a named query, and every so many
microseconds of which changes take effect; 0: at once."""
_CLAUSES = {
    "distinct": "SELECT DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
}


@dataclass(frozen=True)
class Reason:
    """What makes a query retract rows, and its position."""

    what: str
    place: Place


@dataclass(frozen=True)
class Mode:
    """How a query answers: with changes if it has a pace or a reason, or was asked to."""

    changes: bool
    """If not, results are appended."""
    every: int | None = None
    """The pace of EMIT CHANGES EVERY, in microseconds."""
    at_ends: bool = False
    """Whether results are the answers of time windows, each appended when its window ends."""


def choose_mode(tree: exp.Expr, sql: str, functions: Collection[str]) -> Mode:
    """The mode of a query, as EMIT says; raises an error if that is impossible."""
    emit = _outermost_emit(tree, sql)
    reason = Reasons(sql, functions).of_query(tree, {})
    has_windows = any(one.find_ancestor(EndsCall) is None for one in tree.find_all(WindowCall))
    if emit is None:
        return Mode(reason is not None and not has_windows, at_ends=has_windows)
    place, every = place_of(emit, sql), emit.args.get("every")
    if emit.args["kind"] == "CHANGES":
        if every is not None and every <= 0:
            raise SqlError(
                "EVERY needs a positive length of time",
                place=place,
                hint="write EMIT CHANGES EVERY 5 SECONDS",
            )
        return Mode(True, every)
    if every is not None:
        raise SqlError(
            "EVERY is only allowed with EMIT CHANGES", place=place, hint="leave EVERY out"
        )
    if has_windows:
        return Mode(False, at_ends=True)
    if reason is not None:
        raise SqlError(
            "EMIT APPEND is not possible for this query: it also retracts rows",
            place=place,
            detail=f"because of {reason.what} in line {reason.place.line}, "
            f"column {reason.place.column}",
            hint="write EMIT CHANGES, or leave EMIT out",
        )
    return Mode(False)


def unwrap(tree: exp.Expr) -> exp.Expr:
    """The query inside plain brackets."""
    while isinstance(tree, exp.Subquery) and tree.is_wrapper:
        tree = tree.this
    return tree


def is_union_all(tree: exp.Expr) -> bool:
    """Whether a query is a UNION ALL of two without other clauses."""
    return isinstance(tree, exp.Union) and not tree.args.get("distinct")


@dataclass(frozen=True)
class Reasons:
    """Finds why queries retract rows; queries of WITH are examined once."""

    sql: str
    functions: Collection[str]
    _known: dict[int, Reason | None] = field(default_factory=dict)

    def of_query(self, tree: exp.Expr, named: Mapping[str, exp.CTE]) -> Reason | None:
        """The first part of a query that retracts rows, including what it reads."""
        tree = unwrap(tree)
        named = {**named, **named_queries(tree, self.sql)}
        if FOLDED in tree.meta:
            return Reason("a named query whose answer changes", place_of(tree, self.sql))
        if isinstance(tree, exp.Select):
            own = self.of_select(tree)
            return own or next(filter(None, self._below(tree, named)), None)
        if is_union_all(tree):
            sides = (self.of_query(side, named) for side in (tree.this, tree.expression))
            own = next(self._clauses(tree), None)
            return own or next(filter(None, sides), None)
        if isinstance(tree, exp.SetOperation):
            place = operator_place(tree, self.sql)
            name = " ".join(self.sql[place.start : place.end].upper().split())
            return Reason(name, place)
        if isinstance(tree, exp.Subquery):
            return next(self._clauses(tree), None) or self.of_query(tree.this, named)
        return None

    def of_select(self, tree: exp.Select) -> Reason | None:
        """The first clause of a query itself that retracts rows."""
        return next(chain(self._of_rows(tree), self._subqueries(tree)), None)

    def is_plain(self, tree: exp.Expr) -> bool:
        """Whether a query can be flattened into the one that reads it."""
        tree = unwrap(tree)
        if not isinstance(tree, exp.Select) or FOLDED in tree.meta:
            return False
        return self.of_select(tree) is None

    def has_plain_rows(self, tree: exp.Expr) -> bool:
        """Whether a query could be flattened but for subqueries in its conditions."""
        tree = unwrap(tree)
        if not isinstance(tree, exp.Select) or FOLDED in tree.meta:
            return False
        return next(self._of_rows(tree), None) is None

    def _of_rows(self, tree: exp.Select) -> Iterator[Reason]:
        return chain(self._clauses(tree), self._aggregates(tree), self._joins(tree))

    def _clauses(self, tree: exp.Expr) -> Iterator[Reason]:
        for key, name in _CLAUSES.items():
            clause = tree.args.get(key)
            if isinstance(clause, exp.Expr):
                yield Reason(name, place_of(clause, self.sql))

    def _aggregates(self, tree: exp.Select) -> Iterator[Reason]:
        for item in tree.expressions:
            for call in aggregates_in(item, self.functions):
                inner = call
                while isinstance(inner, exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
                    inner = inner.this
                assert isinstance(inner, exp.Func)
                yield Reason(f"the aggregate {written(inner)}", place_of(call, self.sql))

    def _joins(self, tree: exp.Select) -> Iterator[Reason]:
        for join in tree.args.get("joins") or ():
            words = [str(join.args.get(part) or "").upper() for part in ("side", "kind")]
            if words[0] or words[1] in ("OUTER", "SEMI", "ANTI"):
                name = " ".join(filter(None, words))
                yield Reason(f"{name} JOIN", place_of(join, self.sql))

    def _subqueries(self, tree: exp.Select) -> Iterator[Reason]:
        for one in subquery_columns(tree):
            yield Reason("a subquery", place_of(one, self.sql))
        where = tree.args.get("where")
        for node in where.walk() if where is not None else ():
            if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
                yield Reason("EXISTS", place_of(node, self.sql))
            elif isinstance(node, exp.In) and node.args.get("query") is not None:
                yield Reason("IN (SELECT …)", place_of(node, self.sql))

    def _below(self, tree: exp.Select, named: Mapping[str, exp.CTE]) -> Iterator[Reason | None]:
        first = tree.args.get("from_")
        entries = [] if first is None else [first.this]
        for entry in (*entries, *(join.this for join in tree.args.get("joins") or ())):
            if isinstance(entry, exp.Subquery):
                yield self._of_entry(entry.this, named)
            elif isinstance(entry.this, TableCall):
                yield self._of_call(entry.this)
            elif isinstance(entry.this, TopCall):
                yield Reason("ROW_NUMBER()", place_of(entry.this, self.sql))
            elif isinstance(entry.this, TableOverCall):
                yield Reason("OVER", place_of(entry.this, self.sql))
            elif isinstance(entry, exp.Table) and entry.name.lower() in named:
                name = entry.name.lower()
                query = named[name]
                if id(query) not in self._known:
                    others = {other: q for other, q in named.items() if other != name}
                    self._known[id(query)] = self._of_entry(query.this, others)
                yield self._known[id(query)]

    def of_rows_of(self, entry: exp.Expr) -> bool:
        """Whether the rows of an entry of FROM are retracted, as far as its tree shows."""
        alias = entry.args.get("alias")
        if alias is not None and alias.args.get("stream_window") is not None:
            return True
        if isinstance(entry, exp.Subquery):
            return self._of_entry(entry.this, {}) is not None
        if isinstance(entry, exp.Table) and isinstance(entry.this, exp.Identifier):
            return self._of_named(entry)
        return isinstance(entry.this, WindowCall)

    def _of_named(self, entry: exp.Table) -> bool:
        """The same for a query that some WITH around the entry names."""
        around: exp.Expr | None = entry
        while (around := around.parent if around is not None else None) is not None:
            named = named_queries(around, self.sql)
            if entry.name.lower() in named:
                return self._of_entry(named[entry.name.lower()].this, {}) is not None
        return False

    def _of_call(self, call: TableCall) -> Reason | None:
        """A function that answers retracts what no longer holds."""
        from nilometer.sql.rewrite.mining_errors import blamed  # noqa: PLC0415  rarely needed

        with blamed(call, self.sql):
            answers = kind_of(call.function) is FunctionKind.ANSWERS
        return Reason(call.function, place_of(call, self.sql)) if answers else None

    def _of_entry(self, tree: exp.Expr, named: Mapping[str, exp.CTE]) -> Reason | None:
        """Why a query in FROM is not a stream of its own."""
        inner = unwrap(tree)
        if is_union_all(inner):
            return Reason("UNION ALL in FROM", operator_place(inner, self.sql))  # type: ignore[arg-type]
        return self.of_query(inner, named)


def _outermost_emit(tree: exp.Expr, sql: str) -> Emit | None:
    """The EMIT of the outermost query; raises an error if there is one elsewhere."""
    outermost: exp.Expr | None = tree
    own: Emit | None = None
    while outermost is not None and own is None:
        own = outermost.args.get("emit")
        outermost = outermost.this if isinstance(outermost, exp.Subquery) else None
    for other in tree.find_all(Emit):
        if other is not own:
            raise SqlError(
                "EMIT is only allowed in the outermost query",
                place=place_of(other, sql),
                hint="put it at the end of the statement",
            )
    return own
