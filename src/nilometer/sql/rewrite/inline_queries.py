"""Views and named queries in FROM: a query whose answer changes is the relation it folds to.

A view, or such a query, is put into the WITH of the statement that reads it, so it is bound as if
it had been written there. Its text is put after that of the statement, so errors in it are reported
at the right words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.catalog import Catalog
from nilometer.sql.parse.find_names import find_name
from nilometer.sql.parse.placed_parser import move_places
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.query_text import Statement, read_query_tokens, tokenize
from nilometer.sql.rewrite.hints import take_hint
from nilometer.sql.rewrite.modes import FOLDED, choose_mode, unwrap

_BETWEEN: Final = "\n"


def inline_queries(statement: Statement, catalog: Catalog) -> Statement:
    """The statement, with the named queries that it reads in its WITH."""
    if not catalog.queries:
        return statement
    inliner = _Inliner(catalog, statement.sql, _own_names(statement.tree))
    inliner.add_all(statement.tree, ())
    if not inliner.inlined:
        return statement
    tree = statement.tree.copy()
    clause = tree.args.get("with_")
    if clause is None:
        tree.set("with_", exp.With(expressions=list(inliner.inlined.values())))
    else:
        clause.set("expressions", [*inliner.inlined.values(), *clause.expressions])
    return replace(statement, tree=tree, sql=inliner.sql)


@dataclass
class _Inliner:
    """Collects the queries that a statement reads, and those that these read."""

    catalog: Catalog
    sql: str
    own: Mapping[str, exp.CTE]
    """The queries of WITH anywhere in the statement, by their names in lower case."""
    inlined: dict[str, exp.CTE] = field(default_factory=dict)

    def add_all(self, tree: exp.Expr, path: tuple[str, ...]) -> None:
        """Add the queries that a query reads; the path is of named queries that lead there."""
        for entry, name in list(self._entries(tree)):
            if name in path:
                raise SqlError(
                    f"{name} reads itself",
                    place=place_of(entry, self.sql),
                    detail=f"{' reads '.join((*path, name))}",
                    hint="drop one of them, and create it again without the other",
                )
            if name not in self.inlined:
                self._add(name, path)

    def _entries(self, tree: exp.Expr) -> Iterator[tuple[exp.Table, str]]:
        """The entries of FROM that name queries of the catalog."""
        for entry in tree.find_all(exp.Table):
            if not isinstance(entry.this, exp.Identifier) or entry.name.lower() in self.own:
                continue
            name = find_name(entry.this, self.catalog.queries)
            if name is not None and find_name(entry.this, self.catalog.relations) is None:
                yield entry, name

    def _add(self, name: str, path: tuple[str, ...]) -> None:
        offset = len(self.sql) + len(_BETWEEN)
        text = self.catalog.queries[name]
        read = read_query_tokens(text, tokenize(text))
        tree = _folded(read, self.catalog)
        move_places(tree, offset)
        self.sql += _BETWEEN + text
        self._require_unhidden(name, tree)
        self.add_all(tree, (*path, name))
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        self.inlined[name] = exp.CTE(this=tree, alias=alias)

    def _require_unhidden(self, name: str, tree: exp.Expr) -> None:
        """Refuse a statement whose WITH hides a name that a named query reads."""
        inside = _own_names(tree)
        for entry in tree.find_all(exp.Table):
            hidden = self.own.get(entry.name.lower())
            if hidden is not None and entry.name.lower() not in inside:
                raise SqlError(
                    f"WITH hides {entry.name}, which {name} reads",
                    place=place_of(hidden.args["alias"], self.sql),
                    hint="give the query of WITH another name",
                )


def _own_names(tree: exp.Expr) -> dict[str, exp.CTE]:
    return {query.alias.lower(): query for query in tree.find_all(exp.CTE)}


def _folded(read: Statement, catalog: Catalog) -> exp.Expr:
    """A query as a relation: without its hint and EMIT, but with the pace that EMIT gave it."""
    tree, _, _ = take_hint(read.tree, read.sql)
    mode = choose_mode(tree, read.sql, catalog.functions)
    tree = tree.copy()
    outermost: exp.Expr | None = tree
    while outermost is not None:
        outermost.set("emit", None)
        outermost = outermost.this if isinstance(outermost, exp.Subquery) else None
    if mode.changes:
        unwrap(tree).meta[FOLDED] = mode.every or 0
    return tree
