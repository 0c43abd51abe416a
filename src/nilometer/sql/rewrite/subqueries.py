"""Subqueries lifted out of expressions: each becomes a column of the rows that use it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import ClassVar, Final

from sqlglot import exp

from nilometer.sql.expressions.aggregate_calls import is_aggregate
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.places import conjuncts, place_of, put_at, text_of
from nilometer.sql.parse.window_call_parser import WindowCall
from nilometer.sql.rewrite.semi_joins import is_semi_join, put_semi_joins

_PREFIX: Final = "subquery#"
"""The prefix of subquery names; their only column has the same name."""


class SubqueryUse(StrEnum):
    """How a subquery is used."""

    ROWS = "whether it has rows"
    EQUAL = "whether it has a row equal to a value"
    UNKNOWN = "whether it has a row whose equality is unknown because of NULLs"
    VALUE = "its value"


class SubqueryColumn(exp.Expression):
    """A subquery lifted out of an expression of its SELECT: its name and use."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "query": True,
        "asked": True,
        "value": False,
    }


def put_subqueries(tree: exp.Query, sql: str, functions: Collection[str]) -> exp.Query:
    """The query with the subqueries inside expressions as columns of the outer rows."""
    if not any(_is_subquery(node) or is_semi_join(node) for node in tree.walk()):
        return tree
    copied = tree.copy()
    for select in list(copied.find_all(exp.Select)):
        put_semi_joins(select, sql)
    numbers = count()
    for select in list(copied.find_all(exp.Select)):
        if select.args.get("from_") is not None:
            _Taker(select, sql, functions, numbers).take()
    return copied


def subquery_columns(select: exp.Expr) -> list[SubqueryColumn]:
    """The subqueries that were lifted out of a SELECT."""
    return select.args.get("subqueries") or []


def names_subquery(tree: exp.Expr) -> bool:
    """Whether an expression names a subquery that was lifted out."""
    return any(node.table.startswith(_PREFIX) for node in tree.find_all(exp.Column))


def is_tested(condition: exp.Expr) -> bool:
    """Whether a condition only tests for rows of a subquery: EXISTS, IN."""
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else condition
    if isinstance(inner, exp.Exists):
        return isinstance(inner.this, exp.Query)
    return isinstance(inner, exp.In) and inner.args.get("query") is not None


def _is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.Exists):
        return isinstance(node.this, exp.Query)
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    around = node.parent
    return isinstance(node, exp.Subquery) and not isinstance(around, _ENTRIES)


def _owned(part: exp.Expr) -> Iterator[exp.Expr]:
    """The subqueries of an expression, not those inside them."""
    return (node for node in part.walk(prune=_is_subquery) if _is_subquery(node))


def _has_own(part: exp.Expr | None) -> bool:
    return part is not None and next(_owned(part), None) is not None


@dataclass
class _Taker:
    """Lifts the subqueries out of one SELECT."""

    select: exp.Select
    sql: str
    functions: Collection[str]
    numbers: Iterator[int]
    taken: list[SubqueryColumn] = field(default_factory=list)

    def take(self) -> None:
        parts = [*self.select.expressions, self.select.args.get("order")]
        having = self.select.args.get("having")
        if self._is_grouped and any(map(_has_own, [*parts, having])):
            _GroupSplitter(self.select, self.sql, self.functions).split()
        for item in list(self.select.expressions):
            if _has_own(item):
                self._take_item(item)
        where = self.select.args.get("where")
        for condition in list(conjuncts(where.this)) if where is not None else ():
            if not is_tested(condition):
                self._take_all(condition)
        if self.select.args.get("order") is not None:
            self._take_all(self.select.args["order"])
        if self.taken:
            self.select.set("subqueries", self.taken)

    @property
    def _is_grouped(self) -> bool:
        if self.select.args.get("group") is not None or self.select.args.get("having") is not None:
            return True
        return any(
            is_aggregate(node, self.functions)
            for item in self.select.expressions
            for node in item.walk(prune=_is_subquery)
            if not _is_subquery(node)
        )

    def _take_item(self, item: exp.Expr) -> None:
        """Lift the subqueries out of a column of the list, which keeps its name."""
        if not isinstance(item, exp.Alias):
            name = exp.to_identifier(text_of(item, self.sql), quoted=True)
            named = exp.Alias(this=item.copy(), alias=name)
            item.replace(put_at(named, place_of(item, self.sql)))
            item = named
        self._take_all(item)

    def _take_all(self, part: exp.Expr) -> None:
        for node in list(_owned(part)):
            node.replace(self._column(node))

    def _column(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Exists():
                shown = self._lift(node, node.this, SubqueryUse.ROWS)
            case exp.In():
                query, value = node.args["query"], node.this
                equal = self._lift(node, query, SubqueryUse.EQUAL, value)
                unknown = self._lift(node, query, SubqueryUse.UNKNOWN, value)
                shown = exp.Case(
                    ifs=[
                        exp.If(this=equal, true=exp.true()),
                        exp.If(this=unknown, true=exp.Cast(this=exp.Null(), to=_BOOLEAN.copy())),
                    ],
                    default=exp.false(),
                )
            case _:
                return self._lift(node, node, SubqueryUse.VALUE)
        negated = bool(node.args.get("negate"))
        return exp.Paren(this=exp.Not(this=shown) if negated else shown)

    def _lift(
        self, node: exp.Expr, query: exp.Expr, use: SubqueryUse, value: exp.Expr | None = None
    ) -> exp.Expr:
        name = f"{_PREFIX}{next(self.numbers)}"
        inner = query.unnest() if isinstance(query, exp.Subquery) else query
        column = SubqueryColumn(
            this=name,
            query=inner.copy(),
            asked=use,
            value=None if value is None else value.copy(),
        )
        column.meta.update(put_at(exp.Null(), place_of(node, self.sql)).meta)
        self.taken.append(column)
        return put_at(_quoted(name, name), place_of(node, self.sql))


@dataclass
class _GroupSplitter:
    """Splits a SELECT with groups in two: groups in FROM, and the expressions over them."""

    select: exp.Select
    sql: str
    functions: Collection[str]
    inner: list[exp.Expr] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """The texts of the groups' output, and the names of the columns."""

    def split(self) -> None:
        select = self.select
        entry = select.args["from_"].this
        self.alias = entry.alias_or_name or "groups"
        items = [self._item(item) for item in select.expressions]
        group = select.args.get("group")
        for key in group.expressions if group is not None else ():
            if isinstance(key, exp.Column) and key.name.lower() not in self._taken:
                self._expose(key, key.name)
        kept, moved = self._having()
        order = select.args.get("order")
        if order is not None:
            order = exp.Order(expressions=[self._term(term) for term in order.expressions])
        below = exp.Select(expressions=self.inner)
        for clause in ("from_", "joins", "where", "windows", "group"):
            below.set(clause, select.args.get(clause))
            select.set(clause, None)
        below.set("having", exp.Having(this=exp.and_(*kept, copy=False)) if kept else None)
        below.meta.update(put_at(exp.Null(), place_of(entry, self.sql)).meta)
        name = exp.TableAlias(this=exp.to_identifier(self.alias, quoted=True))
        source = exp.Subquery(this=below, alias=name)
        source.meta.update(below.meta)
        select.set("expressions", items)
        select.set("from_", exp.From(this=source))
        select.set("having", None)
        select.set("where", exp.Where(this=exp.and_(*moved, copy=False)) if moved else None)
        select.set("order", order)

    @property
    def _taken(self) -> set[str]:
        return {one.alias.lower() for one in self.inner}

    def _item(self, item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Alias):
            name = item.alias
        elif isinstance(item, exp.Column):
            name = item.name
        else:
            name = text_of(item, self.sql)
        value = item.unalias()
        is_free = not _has_own(value) and name.lower() not in self._taken
        over = self._expose(value, name) if is_free else self._over_groups(value)
        shown = exp.Alias(this=over, alias=exp.to_identifier(name, quoted=True))
        return put_at(shown, place_of(item, self.sql))

    def _having(self) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """The conditions that groups can test, and those with subqueries, over groups."""
        having = self.select.args.get("having")
        kept: list[exp.Expr] = []
        moved: list[exp.Expr] = []
        for condition in conjuncts(having.this) if having is not None else ():
            if _has_own(condition):
                moved.append(self._over_groups(condition))
            else:
                kept.append(condition.copy())
        return kept, moved

    def _term(self, term: exp.Expr) -> exp.Expr:
        copied = term.copy()
        copied.set("this", self._over_groups(term.this))
        return copied

    def _over_groups(self, tree: exp.Expr) -> exp.Expr:
        """An expression over the groups' output; subqueries stay unchanged."""
        if _is_subquery(tree):
            copied = tree.copy()
            if isinstance(tree, exp.In):
                copied.set("this", self._over_groups(tree.this))
            return copied
        if is_aggregate(tree, self.functions):
            return self._expose(tree, f"group#{len(self.inner)}")
        if isinstance(tree, exp.Column):
            known = {one.alias.lower(): one.alias for one in self.inner}
            name = known.get(tree.name.lower())
            if name is not None and not tree.table:
                return self._named(name, tree)
            return self._expose(tree, f"group#{len(self.inner)}" if name else tree.name)
        copied = tree.copy()
        for child in list(copied.iter_expressions()):
            child.replace(self._over_groups(child))
        return copied

    def _expose(self, tree: exp.Expr, name: str) -> exp.Expr:
        text = tree.sql()
        if text not in self.names:
            self.names[text] = name
            shown = exp.Alias(this=tree.copy(), alias=exp.to_identifier(name, quoted=True))
            self.inner.append(put_at(shown, place_of(tree, self.sql)))
        return self._named(self.names[text], tree)

    def _named(self, name: str, at: exp.Expr) -> exp.Expr:
        return put_at(_quoted(name, self.alias), place_of(at, self.sql))


def _quoted(name: str, table: str) -> exp.Column:
    return exp.column(
        exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True)
    )


_ENTRIES: Final = (
    type(None),
    exp.From,
    exp.Join,
    exp.CTE,
    exp.SetOperation,
    exp.Subquery,
    TableCall,
    WindowCall,
)
"""What queries in brackets stand in, if they are no values."""
_BOOLEAN: Final = exp.DataType.build("boolean")
