"""UNION ALL of streams in FROM: together their rows are a stream.

`FROM (SELECT ts, v FROM Hall UNION ALL SELECT ts, v FROM Attic)` can thus stand wherever a stream
can: in time windows, below OVER and patterns, and with a window after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sqlglot import exp

from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.parse.window_call_parser import WindowCall
from nilometer.sql.rewrite.modes import Reasons, is_union_all, unwrap

_ENTRIES: Final = (exp.From, exp.Join)
Named = Mapping[str, exp.CTE]


class UnionCall(exp.Expression, exp.Func):
    """The rows of several streams as one: a UNION ALL, or its name in WITH."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True}


def put_unions(
    tree: exp.Query,
    sql: str,
    reasons: Reasons,
    is_static: Callable[[exp.Expr, Collection[str]], bool],
) -> exp.Query:
    """The query with every UNION ALL of streams as one stream wherever it is read.

    `is_static` tells whether a query reads static tables alone, given the names of WITH.
    """
    if not any(map(is_union_all, tree.find_all(exp.Union))):
        return tree
    tree = tree.copy()
    rewriter = _Rewriter(sql, reasons, is_static)
    for entry, named in list(rewriter.entries(tree, {})):
        query = _union_of(entry, named)
        if query is not None and rewriter.is_stream(query, entry, named):
            _put(entry)
    return tree


def sides_of(query: exp.Expr) -> Iterator[exp.Expr]:
    """The queries that UNION ALL combines, from left to right."""
    query = unwrap(query)
    if is_union_all(query):
        assert isinstance(query, exp.Union)
        yield from sides_of(query.this)
        yield from sides_of(query.expression)
    else:
        yield query


@dataclass(frozen=True)
class _Rewriter:
    sql: str
    reasons: Reasons
    is_static: Callable[[exp.Expr, Collection[str]], bool]

    def entries(self, node: exp.Expr, named: Named) -> Iterator[tuple[exp.Expr, Named]]:
        """All entries of FROM with the names of WITH around them; those read by others first."""
        clause = node.args.get("with_")
        if clause is not None:
            named = {**named, **named_queries(node, self.sql)}
            for query in clause.expressions:
                yield from self.entries(query, named)
        for child in node.iter_expressions():
            if child is not clause:
                yield from self.entries(child, named)
        is_entry = isinstance(node, exp.Subquery | exp.Table)
        if is_entry and (isinstance(node.parent, _ENTRIES) or node.arg_key == "input"):
            yield node, named

    def is_stream(self, query: exp.Expr, entry: exp.Expr, named: Named) -> bool:
        """Whether rows are only appended, and nothing inside sets how long they are kept."""
        alias = entry.args.get("alias")
        has_window = alias is not None and alias.args.get("stream_window") is not None
        if query.find(WindowCall) is not None or (not has_window and query.find(StreamWindow)):
            return False
        inner = (one for one in query.find_all(exp.Union) if one is not query)
        if any(one.args.get("with_") is not None for one in inner):
            return False
        if self.reasons.of_query(query, named) is not None:
            return False
        return not any(self.is_static(side, named) for side in sides_of(query))


def _union_of(entry: exp.Expr, named: Named) -> exp.Expr | None:
    """The UNION ALL that an entry is, or names."""
    inner: exp.Expr | None = None
    if isinstance(entry, exp.Subquery):
        inner = unwrap(entry.this)
    elif (
        isinstance(entry.this, exp.Identifier)
        and entry.args.get("db") is None
        and entry.name.lower() in named
    ):
        query = named[entry.name.lower()]
        inner = None if query.args["alias"].args.get("columns") else unwrap(query.this)
    return inner if inner is not None and is_union_all(inner) else None


def _put(entry: exp.Expr) -> None:
    """Replace an entry by a call: under its name, with the window after it."""
    source = entry.this if isinstance(entry, exp.Subquery) else exp.Table(this=entry.this.copy())
    call = UnionCall(this="UNION ALL", input=source.copy())
    call.meta.update(entry.meta)
    table = exp.Table(this=call)
    alias = entry.args.get("alias")
    name = exp.to_identifier(entry.alias_or_name, quoted=True)
    table.set("alias", exp.TableAlias(this=name) if alias is None else alias.copy())
    if table.args["alias"].this is None:
        table.args["alias"].set("this", name)
    for key in ("pivots", "sample"):
        table.set(key, entry.args.get(key))
    table.meta.update(entry.meta)
    entry.replace(table)
