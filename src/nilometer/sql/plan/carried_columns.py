"""Which columns represent others: in results, in ROWS windows, in partitions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.kernels.expression_types import is_integer
from nilometer.sql.expressions.scalars import ColumnRef, ComputedRef, Ref, Scalar, column, spell_own
from nilometer.sql.plan.join_plan import Carried, JoinPlan, Source
from nilometer.sql.plan.types import Types


def leaves_as(ref: Ref, plan: JoinPlan, types: Types) -> Ref:
    """The column whose value represents another's: equal keys leave the join once."""
    for key in plan.keys:
        for equal in key.classes:
            first = equal.members[0]
            kinds = {types.of_ref(first), types.of_ref(ref), equal.kind}
            if ref in equal.members and len(kinds) == 1 and _is_same_when_equal(equal.kind):
                return first
    return ref


def selected_above(source: Source) -> Ref | None:
    """The column that marks which rows of a ROWS window are selected."""
    if not source.above:
        return None
    tree = exp.and_(*(condition.tree for condition in source.above))
    return ComputedRef(source.name, spell_own(tree), tree)


def guards_of(source: Source, carried: Carried) -> tuple[Scalar, ...]:
    """The conditions outside of which a computed column is never read or computed."""
    if isinstance(carried.ref, ColumnRef):
        return ()
    partition = [partition_ref(source, v) for v in source.rows.partition] if source.rows else []
    if carried.ref == selected_above(source) or carried.ref in partition:
        return source.below
    return (*source.below, *source.above)


def partition_ref(source: Source, value: Scalar) -> Ref:
    """The column that holds a value of PARTITION BY."""
    if len(value.columns) == 1 and value.tree == column(value.columns[0]):
        return value.columns[0]
    return ComputedRef(source.name, spell_own(value.tree), value.tree)


def _is_same_when_equal(kind: pa.DataType) -> bool:
    """Whether equal values of this type are always the same value: not so for 0.0 and -0.0."""
    return bool(
        is_integer(kind)
        or pat.is_boolean(kind)
        or pat.is_date(kind)
        or pat.is_timestamp(kind)
        or pat.is_binary(kind)
        or pat.is_string(kind)
    )


def output_names(plan: JoinPlan) -> tuple[str, ...]:
    """The names of the columns that leave a join, with their streams if it has several."""
    refs = [one.ref for one in plan.output]
    if len(plan.sources) > 1:
        return tuple(map(str, refs))
    return tuple(
        ".".join((ref.column, *ref.fields)) if isinstance(ref, ColumnRef) else str(ref)
        for ref in refs
    )


def only_stream(plan: JoinPlan) -> str | None:
    """The stream that all results come from, if there is only one."""
    names = {source.relation.name for source in plan.sources}
    return names.pop() if len(names) == 1 else None
