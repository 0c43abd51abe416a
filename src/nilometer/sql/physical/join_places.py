"""A plan as the spec of the operator that runs it, with columns by position."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.routing import Routing
from nilometer.kernels.rows_window import RowsWindow
from nilometer.kernels.window_join import Residual
from nilometer.operators.key_counts import RoutingKey, routing_keys
from nilometer.operators.predicates import SqlTest
from nilometer.operators.stage import OperatorSpec, Stage
from nilometer.operators.watermarks import StreamClock
from nilometer.operators.window_join import WindowJoinSpec
from nilometer.sql.expressions.compile_scalar import compile_over
from nilometer.sql.expressions.scalars import ColumnRef, Ref, Scalar
from nilometer.sql.plan.carried_columns import partition_ref, selected_above
from nilometer.sql.plan.function_calls import cost_of_calls
from nilometer.sql.plan.join_plan import Carried, JoinPlan, Source
from nilometer.sql.plan.types import TIMESTAMP, Types


def build_stage(plan: JoinPlan) -> Stage:
    """The stage of a plan to which all rules have been applied."""
    assert plan.routing is not None
    clocks = tuple(
        StreamClock(ended=True) if source.is_table else source.relation.clock
        for source in plan.sources
    )
    keys = key_names(plan, plan.routing)
    return Stage(_build_operator(plan), clocks, plan.routing, keys=keys)


def key_names(plan: JoinPlan, routing: Routing) -> tuple[RoutingKey, ...]:
    """The keys by which a join's rows are routed, with the names of their columns; maybe none."""
    return routing_keys(routing, [column_names(one) for one in plan.sources]) if plan.keys else ()


def column_names(source: Source) -> tuple[str, ...]:
    """The names of the columns that travel, for people."""
    refs = [one.ref for one in source.carried]
    return tuple(
        ".".join((ref.column, *ref.fields)) if isinstance(ref, ColumnRef) else str(ref)
        for ref in refs
    )


def _build_operator(plan: JoinPlan) -> OperatorSpec:
    join = build_join(plan)
    return join if plan.algorithm is None else plan.algorithm.host(join)


def build_join(plan: JoinPlan) -> WindowJoinSpec:
    """The join of a plan whose columns are known."""
    windows = rows_windows(plan)
    return WindowJoinSpec(
        plan.network,
        tuple(carried_schema(source) for source in plan.sources),
        layouts(plan),
        tuple(place(plan, one) for one in plan.output),
        plan.kernel,
        tuple(residual(plan, condition) for condition in plan.residuals),
        windows if any(window is not None for window in windows) else (),
        plan.loads,
    )


def layouts(plan: JoinPlan) -> tuple[RowLayout, ...]:
    """The positions of each source's time and keys."""
    return tuple(
        RowLayout(
            time_place(source),
            tuple(
                tuple(source.carried.index(equal.of(source.name)) for equal in key.classes)
                if source.name in key.streams
                else None
                for key in plan.keys
            ),
        )
        for source in plan.sources
    )


def rows_windows(plan: JoinPlan) -> tuple[RowsWindow | None, ...]:
    """The ROWS windows of the sources."""
    return tuple(rows_window(source) for source in plan.sources)


def rows_window(source: Source) -> RowsWindow | None:
    """The ROWS window of a source, if it has one."""
    if source.rows is None:
        return None
    declared = [
        find_column(source, ColumnRef(source.name, name))
        for name, kind in zip(source.relation.columns, source.relation.types, strict=True)
        if kind is not None
    ]
    selected = selected_above(source)
    return RowsWindow(
        source.rows.count,
        tuple(find_column(source, partition_ref(source, v)) for v in source.rows.partition),
        tuple(declared),
        None if selected is None else find_column(source, selected),
    )


def carried_schema(source: Source) -> pa.Schema:
    """Columns c0, c1, … as they travel."""
    return pa.schema([(f"c{i}", one.kind) for i, one in enumerate(source.carried)])


def place(plan: JoinPlan, carried: Carried) -> tuple[int, int]:
    """(stream, column) of a column that travels."""
    number = plan.number(carried.ref.stream)
    return number, plan.sources[number].carried.index(carried)


def time_place(source: Source) -> int:
    """The position of a source's time among the columns that travel."""
    return source.carried.index(Carried(source.time, TIMESTAMP))


def find_column(source: Source, ref: Ref) -> int:
    """The position of a column, whichever type it travels as."""
    return next(i for i, one in enumerate(source.carried) if one.ref == ref)


def flat_columns(source: Source) -> tuple[int, ...]:
    """Columns of simple types, by which rows may be distributed."""
    return tuple(i for i, one in enumerate(source.carried) if not pat.is_nested(one.kind))


def residual(plan: JoinPlan, condition: Scalar) -> Residual:
    """A condition that the join tests."""
    types = Types(plan.catalog, plan.sources)
    places = [place(plan, Carried(ref, types.of_ref(ref))) for ref in condition.columns]
    expression = compile_over(
        condition, condition.columns, plan.catalog.functions, plan.catalog.zone
    )
    names = tuple(map(str, condition.columns))
    cost = cost_of_calls(condition, plan.catalog.functions)
    return Residual(tuple(places), SqlTest(str(condition), expression, names), cost)
