"""Scalar expressions of a statement: sqlglot trees in which every column is resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nilometer.errors import Place
from nilometer.sql.catalog import ARRIVAL
from nilometer.sql.expressions.pattern_guards import guarded
from nilometer.sql.expressions.spark_text import require_safe_text


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of a stream in a query, and a field inside it, if any."""

    stream: str
    column: str
    fields: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """The column as an expression over its own stream."""
        if self.column == ARRIVAL:
            return ARRIVAL
        return ".".join(quote_name(part) for part in (self.column, *self.fields))

    @property
    def path(self) -> str:
        """The name of the column, and of the field inside it."""
        return ".".join((self.column, *self.fields))

    def __str__(self) -> str:
        return f"{self.stream}.{self.path}" if self.stream else self.path


RESULT_TIME = ColumnRef("", "_time")
"""The largest time in a result, which every result has."""


@dataclass(frozen=True, slots=True)
class ComputedRef:
    """An expression over one stream's columns that is computed before the join."""

    stream: str
    sql: str
    tree: exp.Expr = field(compare=False, repr=False)

    def __str__(self) -> str:
        return show(self.tree)


Ref: TypeAlias = ColumnRef | ComputedRef


class ResolvedColumn(exp.Expression):
    """A column in a tree, once resolved."""

    arg_types: ClassVar[dict[str, bool]] = {"ref": True}

    @property
    def ref(self) -> Ref:
        ref: Ref = self.args["ref"]
        return ref


@dataclass(frozen=True, eq=False)
class Scalar:
    """An expression over columns of streams, and its position."""

    tree: exp.Expr
    place: Place

    @cached_property
    def columns(self) -> tuple[Ref, ...]:
        """The columns it needs, each once, in the order of their first appearance."""
        return tuple(dict.fromkeys(columns_of(self.tree)))

    @cached_property
    def streams(self) -> frozenset[str]:
        return frozenset(column.stream for column in self.columns)

    def __str__(self) -> str:
        return show(self.tree)


def column(ref: Ref) -> ResolvedColumn:
    """A column as a tree."""
    return ResolvedColumn(ref=ref)


def tree_of(ref: Ref) -> exp.Expr:
    """A column, or the expression that computes it."""
    return column(ref) if isinstance(ref, ColumnRef) else ref.tree.copy()


def rebuild(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The same node over changed children; nothing is copied twice, however deep the tree."""
    arguments: dict[str, object] = {}
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            arguments[key] = change(value)
        elif isinstance(value, list):
            arguments[key] = [change(v) if isinstance(v, exp.Expr) else v for v in value]
        else:
            arguments[key] = value
    rebuilt = type(node)(**arguments)
    rebuilt.meta.update(node.meta)
    return rebuilt


def columns_of(tree: exp.Expr) -> Iterator[Ref]:
    """The columns in a tree, from left to right."""
    return (node.ref for node in tree.find_all(ResolvedColumn, bfs=False))


def spell(tree: exp.Expr, name: Callable[[Ref], str]) -> str:
    """The expression in Spark's SQL, for Spark, its columns written as `name` writes them."""
    called = [node.name.lower() for node in tree.find_all(exp.Anonymous)]
    return require_safe_text(show(guarded(tree), name), called)


def show(tree: exp.Expr, name: Callable[[Ref], str] = str) -> str:
    """The same, for people: names are unquoted, and nothing is checked before it is used."""

    def write(node: exp.Expr) -> exp.Expr:
        if isinstance(node, ResolvedColumn):
            return exp.Var(this=name(node.ref))
        return rebuild(node, write)

    return write(tree).sql(dialect="spark", copy=False)


def respell(shown: str) -> str:
    """Text from `show` as the installed parser version writes it.

    >>> respell("NOT (a.k IS NULL)") == respell("NOT a.k IS NULL")
    False
    >>> respell("a.k<>b.k") == respell("a.k != b.k")
    True
    """
    try:
        return sqlglot.parse_one(shown, dialect="spark").sql(dialect="spark")
    except SqlglotError:
        return shown


def spell_own(tree: exp.Expr) -> str:
    """The same for an expression over one stream's own columns."""
    return spell(tree, lambda ref: ref.sql)


def quote_name(name: str) -> str:
    """A name as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"
