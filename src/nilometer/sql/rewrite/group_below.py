"""OVER in a query that groups: the groups become a query of their own, below OVER."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from nilometer.sql.expressions.aggregate_calls import is_aggregate, no_value_of_group
from nilometer.sql.parse.over_calls import windows_of
from nilometer.sql.parse.places import place_of, put_at, text_of

_BELOW: Final = ("from_", "joins", "laterals", "where", "group", "having", "windows")
"""The clauses of the groups; the list, QUALIFY and ORDER BY stay above."""
_ABOVE: Final = ("qualify", "order")
_AROUND: Final = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_SEVERAL: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)
_UNNAMED: Final = "groups"
Key = tuple[str, exp.Expr]
"""A key of GROUP BY: its name in the groups, and how it is written."""
Named = Mapping[str, exp.Expr]
"""Columns of the list that have names of their own, in lower case."""


def group_below(tree: exp.Query, sql: str, functions: Collection[str]) -> exp.Query:
    """The query with OVER above its groups instead of beside them."""
    if tree.find(exp.Window) is None:
        return tree
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        if any(True for _ in windows_of(select)) and _is_grouped(select, functions):
            _Groups(select, sql, functions).put_below()
    return tree


def _is_grouped(select: exp.Select, functions: Collection[str]) -> bool:
    """Whether a query groups its rows by a list of expressions."""
    group = select.args.get("group")
    if select.args.get("from_") is None or any(one.is_star for one in select.expressions):
        return False
    if group is not None:
        others = (value for key, value in group.args.items() if key != "expressions")
        return not any(others) and group.find(*_SEVERAL) is None
    parts = [*select.expressions, *filter(None, map(select.args.get, _ABOVE))]
    return any(True for part in parts for _ in _aggregates(part, functions))


def _aggregates(node: exp.Expr, functions: Collection[str]) -> Iterator[exp.Expr]:
    """The aggregates of groups, without functions before OVER."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        for part in _parts_of(node):
            yield from _aggregates(part, functions)
    elif is_aggregate(node, functions):
        yield node
    else:
        for child in node.iter_expressions():
            yield from _aggregates(child, functions)


def _parts_of(window: exp.Window) -> Iterator[exp.Expr]:
    """The inputs of a window: the arguments of its function, its partition and order."""
    called = window.this
    while isinstance(called, _AROUND):
        yield from (one for one in called.iter_expressions() if one is not called.this)
        called = called.this
    yield from called.iter_expressions()
    yield from (one for one in window.iter_expressions() if one is not window.this)


@dataclass
class _Groups:
    """Splits one query."""

    select: exp.Select
    sql: str
    functions: Collection[str]
    columns: dict[str, exp.Expr] = field(default_factory=dict)
    """The expressions of the groups' query, by the names of its columns."""

    def put_below(self) -> None:
        select, group = self.select, self.select.args.get("group")
        terms = [] if group is None else group.expressions
        keys = [key for term in terms for key in self._keys(term)]
        named = {
            one.alias.lower(): one.this.copy()
            for one in select.expressions
            if isinstance(one, exp.Alias)
        }
        for item in list(select.expressions):
            self._name(item)
        parts = [*select.expressions, *filter(None, map(select.args.get, _ABOVE))]
        for part in parts:
            self._put(part, keys, named)
        below = exp.Select(
            expressions=[
                exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
                for name, value in self.columns.items()
            ]
        )
        for clause in _BELOW:
            if (node := select.args.get(clause)) is not None:
                select.set(clause, None)
                below.set(clause, node)
        below.meta.update(select.meta)
        first = below.args["from_"].this
        node = first.this.args.get("input") if isinstance(first.this, exp.Func) else None
        name = first.alias_or_name or (node.alias_or_name if node is not None else "")
        alias = exp.TableAlias(this=exp.to_identifier(name or _UNNAMED))
        select.set("from_", exp.From(this=exp.Subquery(this=below, alias=alias)))

    def _keys(self, term: exp.Expr) -> Iterator[Key]:
        """The names that a key has in the groups, and how it can be written.

        A column of the list with the name of a key is that key only if FROM has no column
        of this name: below, both are there.
        """
        items = self.select.expressions
        matches = [one for one in items if isinstance(one, exp.Alias) and _is_name(term, one.alias)]
        if isinstance(term, exp.Literal) and not term.is_string and term.name.isdecimal():
            matches = items[int(term.name) - 1 : int(term.name)]
        if not matches:
            name = term.name if isinstance(term, exp.Column) else text_of(term, self.sql)
            yield self._compute(name, term), term.copy()
            return
        value = matches[0].unalias()
        yield (
            self._compute(matches[0].alias_or_name or text_of(value, self.sql), value),
            value.copy(),
        )
        if isinstance(term, exp.Column):
            yield self._compute(f"{matches[0].alias} ", term), term.copy()

    def _compute(self, name: str, value: exp.Expr) -> str:
        """The name of a value in the groups; made unique."""
        for known, other in self.columns.items():
            if other == value:
                return known
        while name.lower() in map(str.lower, self.columns):
            name += " "
        self.columns[name] = value.copy()
        return name

    def _name(self, item: exp.Expr) -> None:
        """Keep the name of an item of the list."""
        if not isinstance(item, exp.Alias):
            name = item.name if isinstance(item, exp.Column) else text_of(item, self.sql)
            place = place_of(item, self.sql)
            named = exp.Alias(this=item.copy(), alias=exp.to_identifier(name, quoted=True))
            item.replace(put_at(named, place))

    def _put(
        self, node: exp.Expr, keys: Sequence[Key], named: Named, is_inside: bool = False
    ) -> None:
        """Replace expressions by the groups' columns that compute them, also inside OVER."""
        if isinstance(node, exp.Query):
            return
        for name, key in keys:
            if _is_same(node, key):
                self._show(node, name)
                return
        if isinstance(node, exp.Window):
            for part in list(_parts_of(node)):
                self._put(part, keys, named, is_inside=True)
        elif is_aggregate(node, self.functions):
            self._show(node, self._compute(text_of(node, self.sql), node))
        elif isinstance(node, exp.Column):
            value = self._value_of(node, named)
            if is_inside and value.find(exp.Window) is None:
                replacement = exp.Paren(this=value.copy())
                node.replace(replacement)
                self._put(replacement.this, keys, named, is_inside)
        else:
            for child in list(node.iter_expressions()):
                self._put(child, keys, named, is_inside)

    def _value_of(self, node: exp.Column, named: Named) -> exp.Expr:
        """The item of the list that a column names; columns of FROM take precedence."""
        value = None if node.table else named.get(node.name.lower())
        if value is None or any(_is_name(one, node.name) for one in value.find_all(exp.Column)):
            raise no_value_of_group(node.name, place_of(node, self.sql))
        return value

    def _show(self, node: exp.Expr, name: str) -> None:
        shown = exp.column(exp.to_identifier(name, quoted=True))
        node.replace(put_at(shown, place_of(node, self.sql)))


def _is_name(term: exp.Expr, name: str) -> bool:
    is_column = isinstance(term, exp.Column) and not term.table
    return is_column and term.name.lower() == name.lower()


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two expressions are the same; a column may be named with its stream or without."""
    if _bare(one) != _bare(other):
        return False
    pairs = zip(one.find_all(exp.Column), other.find_all(exp.Column), strict=True)
    return all(len({a.table.lower(), b.table.lower()} - {""}) < 2 for a, b in pairs)


def _bare(tree: exp.Expr) -> exp.Expr:
    """An expression with unqualified columns."""

    def bare(node: exp.Expr) -> exp.Expr:
        return exp.column(node.name.lower()) if isinstance(node, exp.Column) else node

    return tree.transform(bare)
