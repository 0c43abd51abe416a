"""Expressions over rows that are computed before rows are put into time windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from nilometer.model.time_windows import WINDOW_END, WINDOW_START
from nilometer.sql.expressions.scalars import (
    RESULT_TIME,
    ColumnRef,
    ResolvedColumn,
    Scalar,
    column,
    columns_of,
    rebuild,
    show,
    tree_of,
)
from nilometer.sql.plan.join_plan import Item, WindowsClause


@dataclass
class BelowWindows:
    """Takes the parts that need no window out of expressions over rows in windows.

    These are computed with the rows themselves, where all of Spark's functions are available.
    """

    name: str
    """The name of the source that stands for the rows in windows."""
    clause: WindowsClause
    _columns: dict[str, Item] = field(default_factory=dict)

    @property
    def items(self) -> list[Item]:
        """The columns of the rows that are needed."""
        return list(self._columns.values())

    def split(self, scalar: Scalar) -> Scalar:
        """The same expression over the needed columns and the windows."""
        return Scalar(self._split(scalar.tree, scalar), scalar.place)

    def can_compute(self, tree: exp.Expr) -> bool:
        """Whether an expression uses no window, but some column."""
        columns = [ref.column for ref in columns_of(tree) if isinstance(ref, ColumnRef)]
        return bool(columns) and WINDOW_START not in columns and WINDOW_END not in columns

    def inside(self, tree: exp.Expr) -> exp.Expr:
        """An expression that uses no window, over the query below."""
        if isinstance(tree, ResolvedColumn):
            return self._inner(tree)
        return rebuild(tree, self.inside)

    def _split(self, tree: exp.Expr, whole: Scalar) -> exp.Expr:
        if self.can_compute(tree) and not _is_part(tree):
            text = show(tree)
            if text not in self._columns:
                self._columns[text] = Item(text, Scalar(self.inside(tree), whole.place))
            return column(ColumnRef(self.name, text))
        if isinstance(tree, ResolvedColumn):
            return tree
        return rebuild(tree, lambda child: self._split(child, whole))

    def _inner(self, tree: ResolvedColumn) -> exp.Expr:
        """A column, as the query below computes it."""
        ref = tree.ref
        if ref == RESULT_TIME:
            return tree
        if not isinstance(ref, ColumnRef):
            return self.inside(tree_of(ref))
        selected = next(item for item in self.clause.query.items if item.name == ref.column)
        inner = selected.value.tree.copy()
        if not ref.fields:
            return inner
        if isinstance(inner, ResolvedColumn) and isinstance(inner.ref, ColumnRef):
            own = inner.ref
            return column(ColumnRef(own.stream, own.column, (*own.fields, *ref.fields)))
        for name in ref.fields:
            inner = exp.Dot(this=inner, expression=exp.to_identifier(name, quoted=True))
        return inner


def _is_part(tree: exp.Expr) -> bool:
    """Whether a tree is not itself a value: WHEN … THEN, or a named argument."""
    is_branch = isinstance(tree, exp.If) and isinstance(tree.parent, exp.Case)
    return is_branch or isinstance(tree, exp.Kwarg | exp.PropertyEQ | exp.Alias | exp.Lambda)
