"""References of the list to windows of GROUP BY, as columns: their starts, ends, and both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from nilometer.model.time_windows import WINDOW_END, WINDOW_START
from nilometer.sql.parse.places import place_of, put_at

_STARTS: Final = ("TUMBLE_START", "HOP_START", "SESSION_START")
_ENDS: Final = ("TUMBLE_END", "HOP_END", "SESSION_END")
_FIELDS: Final = {"start": WINDOW_START, "end": WINDOW_END}


@dataclass(frozen=True)
class NamedWindows:
    """The calls of GROUP BY that cut time, such as window(ts, '1 minute')."""

    select: exp.Select
    calls: Sequence[exp.Expr]
    names: frozenset[str]
    """The names of functions, and of columns of the list that are such calls."""
    sql: str

    @staticmethod
    def of(select: exp.Select, calls: Sequence[exp.Expr], sql: str) -> NamedWindows:
        """The calls, with the names that they have in the statement as it is written."""
        written = {one.sql() for one in calls}
        items = [one for one in select.expressions if isinstance(one, exp.Alias)]
        named = [one.alias.lower() for one in items if one.this.sql() in written]
        return NamedWindows(
            select, calls, frozenset([*named, *(one.name.lower() for one in calls)]), sql
        )

    def put(self) -> None:
        """Put the columns of windows where the list and later clauses name a window."""
        for item in list(self.select.expressions):
            self._keep_name(item)
        for part in (*self.select.expressions, *self._clauses()):
            for node in list(part.find_all(exp.Column, exp.Anonymous, exp.Dot)):
                self._name(node)

    def bounds(self) -> list[exp.Expr]:
        """The columns that GROUP BY groups by."""
        return [self._bound(WINDOW_START, self.calls[0]), self._bound(WINDOW_END, self.calls[0])]

    def _keep_name(self, item: exp.Expr) -> None:
        """Keep the name of a column of the list before its expression is replaced."""
        is_field = isinstance(item, exp.Column | exp.Dot) and item.name.lower() in _FIELDS
        if is_field or self._is_window(item):
            name = item.name if is_field or not self._is_call(item) else self.calls[0].name.lower()
            item.replace(exp.Alias(this=item.copy(), alias=exp.to_identifier(name)))

    def _is_call(self, node: exp.Expr) -> bool:
        written = node.sql()
        return any(one.sql() == written for one in self.calls)

    def _is_window(self, node: exp.Expr) -> bool:
        """Whether it is a whole window: the call, its name, or that of its column."""
        if isinstance(node, exp.Column) and not node.table:
            return node.name.lower() in self.names
        return self._is_call(node)

    def _clauses(self) -> Iterator[exp.Expr]:
        for clause in ("having", "order", "qualify"):
            if (tree := self.select.args.get(clause)) is not None:
                yield tree

    def _name(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Anonymous) and node.name.upper() in (*_STARTS, *_ENDS):
            is_start = node.name.upper() in _STARTS
            node.replace(self._bound(WINDOW_START if is_start else WINDOW_END, node))
            return
        field = node.expression.name if isinstance(node, exp.Dot) else node.name
        of_call = isinstance(node, exp.Dot) and self._is_window(node.this)
        of_name = isinstance(node, exp.Column) and node.table.lower() in self.names
        if (of_call or of_name) and field.lower() in _FIELDS:
            node.replace(self._bound(_FIELDS[field.lower()], node))
        elif self._is_window(node) and not isinstance(node.parent, exp.Dot):
            is_ordered = isinstance(node.parent, exp.Ordered)
            node.replace(self._bound(WINDOW_START, node) if is_ordered else self._both(node))

    def _both(self, at: exp.Expr) -> exp.Expr:
        """A window as a value: STRUCT<start: TIMESTAMP, end: TIMESTAMP>."""
        fields: list[exp.Expr] = [
            exp.PropertyEQ(this=exp.to_identifier(field), expression=self._bound(name, at))
            for field, name in _FIELDS.items()
        ]
        return put_at(exp.Struct(expressions=fields), place_of(at, self.sql))

    def _bound(self, name: str, at: exp.Expr) -> exp.Expr:
        return put_at(exp.column(name), place_of(at, self.sql))
