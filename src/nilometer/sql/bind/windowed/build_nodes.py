"""Joins, selections and lists of a query as nodes: one block where the streams allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.model.time_windows import WINDOW_END, WINDOW_START, SessionWindows
from nilometer.model.windows import RangeWindow
from nilometer.operators.compute import ComputeSpec
from nilometer.operators.window_rows import WindowRowsSpec
from nilometer.sql.bind.windowed.lifetimes import require_lifetimes
from nilometer.sql.bind.windowed.refusals import require_comparable
from nilometer.sql.catalog import Catalog
from nilometer.sql.expressions.scalars import (
    ColumnRef,
    Scalar,
    column,
    tree_of,
)
from nilometer.sql.plan.below_windows import BelowWindows
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import (
    Block,
    Column,
    Combine,
    LastRows,
    Lifetime,
    Node,
    Operation,
    names_of,
    types_of,
)
from nilometer.sql.plan.derived import derived_source
from nilometer.sql.plan.join_plan import Carried, Item, JoinPlan, Source, WindowsClause
from nilometer.sql.plan.operations import choose_columns, compute
from nilometer.sql.plan.row_expressions import RowExpressions, identity
from nilometer.sql.plan.types import TIMESTAMP, Types
from nilometer.sql.rules import BLOCK_RULES, COMBINE_RULES, Rule, apply_rules


@dataclass(frozen=True)
class NodeBuilder:
    """Builds nodes whose columns are given expressions over the rows of FROM and WHERE."""

    sql: str
    catalog: Catalog
    buckets: int
    appends: bool = False
    """Whether rows are only appended: none is retracted, and only one source may have times."""
    at_ends: bool = False
    """Whether time windows are answered when they end, once."""

    def build(self, rows: BoundQuery, items: Sequence[Item]) -> Node:
        """A node with these columns."""
        if self.appends:
            _refuse_joined_results(rows)
        else:
            require_lifetimes(rows)
        if all(source.is_block for source in rows.sources):
            return self.block(rows, items)
        if len(rows.sources) > 1:
            return self._combine(rows, items)
        source = rows.sources[0]
        if source.until is not None:
            lifetimes = (Lifetime((source.name,), 0, source.until),)
            return self.block(replace(rows, lifetimes=lifetimes), items)
        if source.node is None:
            plan = self._plan(rows, items, BLOCK_RULES)
            return LastRows(plan, self._columns(plan))
        if source.in_windows is not None:
            return self._in_windows(source, source.in_windows, rows.conditions, items)
        return self.compute(source, rows.conditions, items)

    def block(self, rows: BoundQuery, items: Sequence[Item]) -> Block:
        """Streams and tables joined as one."""
        known = set(rows.windows)
        ranges = [
            RangeWindow(one.streams[0], one.length)
            for one in rows.lifetimes
            if len(one.streams) == 1 and one.until is None
        ]
        windows = (*rows.windows, *(one for one in ranges if one not in known))
        plan = self._plan(replace(rows, windows=windows), items, BLOCK_RULES)
        return Block(plan, rows.lifetimes, self._columns(plan))

    def compute(self, source: Source, conditions: Sequence[Scalar], items: Sequence[Item]) -> Node:
        """A selection of a node's rows, and the values computed from them."""
        assert source.node is not None
        rows = RowExpressions(self.sql, self.catalog, source)
        test = rows.test(conditions)
        values = [rows.value(item.value) for item in items]
        columns = tuple(
            Column(item.name, kind) for item, (_, kind) in zip(items, values, strict=True)
        )
        node = source.node
        expressions = tuple(expression for expression, _ in values)
        if test is None and expressions == identity(node):
            return node if node.columns == columns else _renamed(node, columns)
        texts = [" AND ".join(map(str, conditions))] if conditions else []
        texts += [str(item.value) for item in items]
        return compute(node, test, expressions, columns, texts)

    def window_rows(self, clause: WindowsClause, items: Sequence[Item]) -> Operation:
        """Rows in time windows: these columns of them, the session keys, and the windows."""
        sessions = isinstance(clause.windows, SessionWindows)
        if sessions and not self.at_ends:
            raise SqlError(
                "a session is only known when it has ended, so its rows cannot be emitted earlier",
                place=clause.query.sources[0].place,
                hint="leave EMIT CHANGES out",
            )
        by = [Item(str(one), one) for one in clause.partition]
        appending = replace(self, appends=True)
        below = appending.build(clause.query, [*items, *by])
        keys = tuple(range(len(items), len(items) + len(by)))
        for place, one in zip(keys, clause.partition, strict=True):
            require_comparable(below.columns[place].kind, one.place, "PARTITION BY")
        kinds = (*types_of(below.columns), TIMESTAMP, TIMESTAMP)
        spec = WindowRowsSpec(clause.windows, keys, self.at_ends, kinds)
        return Operation(spec, (below,), (*names_of(below.columns), WINDOW_START, WINDOW_END))

    def _in_windows(
        self,
        source: Source,
        clause: WindowsClause,
        conditions: Sequence[Scalar],
        items: Sequence[Item],
    ) -> Node:
        """Values of rows in windows, computed below the windows where they do not use them."""
        below = BelowWindows(source.name, clause)
        selections, tests = [], []
        for one in conditions:
            if below.can_compute(one.tree) and not isinstance(clause.windows, SessionWindows):
                selections.append(Scalar(below.inside(one.tree), one.place))
            else:
                tests.append(below.split(one))
        values = [Item(item.name, below.split(item.value)) for item in items]
        query = replace(clause.query, conditions=(*clause.query.conditions, *selections))
        node = self.window_rows(replace(clause, query=query), below.items)
        return self.compute(derived_source(source.name, node, source.place), tests, values)

    def _combine(self, rows: BoundQuery, items: Sequence[Item]) -> Combine:
        """The rows of nodes, joined."""
        held = tuple(
            replace(s, rows=None, until=None, below=(), is_held=True) for s in rows.sources
        )
        conditions = (*rows.conditions, *_time_conditions(rows))
        combined = replace(rows, sources=held, windows=(), conditions=conditions)
        plan = self._plan(combined, items, COMBINE_RULES)
        inputs = tuple(
            self._input(rows, source, joined)
            for source, joined in zip(rows.sources, plan.sources, strict=True)
        )
        plan = replace(plan, sources=tuple(replace(s, below=()) for s in plan.sources))
        return Combine(plan, inputs, self._columns(plan))

    def _input(self, rows: BoundQuery, source: Source, joined: Source) -> Node:
        """What a join of nodes needs of one of its sources: the columns that it carries."""
        if _brings_all(source, joined):
            assert source.node is not None
            return source.node
        items = [
            Item(str(one.ref), Scalar(tree_of(one.ref), source.place)) for one in joined.carried
        ]
        own = tuple(one for one in rows.lifetimes if set(one.streams) <= {source.name})
        alone = BoundQuery((source,), (), joined.below, (), None, own)
        node = self.build(alone, items)
        columns = tuple(
            replace(c, kind=one.kind) for c, one in zip(node.columns, joined.carried, strict=True)
        )
        return cast_columns(node, columns)

    def _plan(
        self,
        rows: BoundQuery,
        items: Sequence[Item],
        rules: tuple[Rule, ...],
    ) -> JoinPlan:
        plan = JoinPlan(
            self.sql,
            self.catalog,
            rows.sources,
            rows.windows,
            rows.conditions,
            tuple(items),
            rows.windows_place,
            buckets=self.buckets,
        )
        return apply_rules(plan, rules)

    def _columns(self, plan: JoinPlan) -> tuple[Column, ...]:
        types = Types(self.catalog, plan.sources)
        return tuple(Column(item.name, types.of_subset(item.value)) for item in plan.items)


def _refuse_joined_results(rows: BoundQuery) -> None:
    """Refuse to join the appended results of a subquery with other streams."""
    timed = [source for source in rows.sources if not source.is_table]
    for source in timed:
        if source.node is not None and len(timed) > 1:
            raise SqlError(
                "the results of a subquery cannot be joined with other streams and appended",
                place=source.place,
                hint="give it a name: CREATE QUERY q AS SELECT … FROM …, and read q; "
                "or write a window after each of them, and EMIT CHANGES",
            )


def _brings_all(source: Source, joined: Source) -> bool:
    """Whether a join of nodes needs all of a node's columns, unchanged."""
    if source.node is None or joined.below:
        return False
    columns = zip(source.relation.columns, source.relation.types, strict=True)
    own = [Carried(ColumnRef(source.name, name), kind) for name, kind in columns if kind]
    return list(joined.carried) == own


def cast_columns(node: Node, columns: tuple[Column, ...]) -> Node:
    """The node with columns of other types or names, cast where they are computed if possible."""
    if node.columns == columns:
        return node
    kinds = types_of(columns)
    match node:
        case Operation(ComputeSpec() as spec):
            return replace(node, spec=replace(spec, types=kinds), names=names_of(columns))
        case Operation() if kinds != types_of(node.columns):
            return compute(node, None, identity(node), columns, names_of(columns))
    return _renamed(node, columns)


def _renamed(node: Node, columns: tuple[Column, ...]) -> Node:
    if isinstance(node, Operation):
        return replace(node, names=names_of(columns))
    return replace(node, columns=columns)


def drop_columns(node: Node, count: int) -> Node:
    """The first columns of a node."""
    if len(node.columns) == count:
        return node
    return choose_columns(node, range(count))


def _time_conditions(rows: BoundQuery) -> Iterator[Scalar]:
    """The windows between streams as conditions on their times; RANGE windows hold anyway."""
    timed = {source.name: source for source in rows.sources if not source.is_table}
    for window in rows.windows:
        if isinstance(window, RangeWindow):
            continue
        for bound in window.bounds(list(timed)):
            later, earlier = timed[bound.later], timed[bound.earlier]
            place = rows.windows_place or later.place
            yield Scalar(at_most(column(later.time), column(earlier.time), bound.limit), place)


def at_most(later: exp.Expr, earlier: exp.Expr, limit: int) -> exp.Expr:
    """later - earlier <= limit, a condition on times."""
    length = exp.Interval(this=exp.Literal.string(str(limit)), unit=exp.Var(this="MICROSECOND"))
    difference = exp.Paren(this=exp.Sub(this=later, expression=earlier))
    return exp.LTE(this=difference, expression=length)
