"""Which columns of an entry of FROM are the time of a stream, as far as its tree shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from nilometer.sql.catalog import Catalog
from nilometer.sql.parse.find_names import find
from nilometer.sql.rewrite.modes import Reasons, is_union_all, unwrap
from nilometer.sql.rewrite.put_ends import named_around
from nilometer.sql.rewrite.put_unions import UnionCall, sides_of

_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class StreamTimes:
    """Looks through subqueries that only select and compute; at those of WITH once."""

    sql: str
    catalog: Catalog
    _known: dict[int, frozenset[str]] = field(default_factory=dict)

    def names(self, entry: exp.Expr) -> frozenset[str]:
        """The columns, in lower case, that are the time; empty if it is no such stream."""
        alias = entry.args.get("alias")
        if alias is not None and (alias.args.get("stream_window") or alias.args.get("columns")):
            return _NONE
        if isinstance(entry, exp.Subquery):
            return self._of_query(entry.this)
        if not isinstance(entry, exp.Table):
            return _NONE
        if isinstance(entry.this, UnionCall):
            return self._of_input(entry.this.args["input"])
        if not isinstance(entry.this, exp.Identifier):
            return _NONE
        query = named_around(entry, self.sql).get(entry.name.lower())
        if query is not None:
            return self._of_named(query)
        relation = find(entry.this, list(self.catalog.relations.values()))
        if relation is None or relation.is_table or relation.time is None:
            return _NONE
        return frozenset({relation.time.lower()})

    def _of_input(self, source: exp.Expr) -> frozenset[str]:
        """Those of a UNION ALL, or of one that has a name."""
        return self.names(source) if isinstance(source, exp.Table) else self._of_union(source)

    def _of_named(self, query: exp.CTE) -> frozenset[str]:
        if query.args["alias"].args.get("columns"):
            return _NONE
        if id(query) not in self._known:
            self._known[id(query)] = _NONE  # while it is unknown
            is_union = is_union_all(unwrap(query.this))
            names = self._of_union(query.this) if is_union else self._of_query(query.this)
            self._known[id(query)] = names
        return self._known[id(query)]

    def _of_query(self, tree: exp.Expr) -> frozenset[str]:
        select = unwrap(tree)
        if not isinstance(select, exp.Select) or select.args.get("from_") is None:
            return _NONE
        if select.args.get("joins") or not Reasons(self.sql, self.catalog.functions).is_plain(tree):
            return _NONE
        below = self.names(select.args["from_"].this)
        names = set(below) if select.is_star else set()
        for item in select.expressions:
            value = item.unalias()
            if isinstance(value, exp.Column) and value.name.lower() in below:
                names.add(item.alias_or_name.lower())
        return frozenset(names)

    def _of_union(self, tree: exp.Expr) -> frozenset[str]:
        """Those of the first; whether they are the time of all is seen when these are bound."""
        first, *others = (self._of_query(side) for side in sides_of(tree))
        return first if all(others) else _NONE
