"""How rows of a source get to a stage: the columns that are sent, computed by Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.types as pat
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from nilometer.kernels.expression_types import type_name
from nilometer.model.time import EARLIEST
from nilometer.spark.pack import NOW, SELECTED
from nilometer.spark.uncomputable import FAILED, ROW, Check, mark_failed, unless_failed
from nilometer.sql.expressions.pattern_guards import limit_note
from nilometer.sql.expressions.scalars import ColumnRef, quote_name, spell_own, tree_of
from nilometer.sql.physical.join_places import time_place
from nilometer.sql.plan.carried_columns import guards_of
from nilometer.sql.plan.join_plan import Carried, JoinPlan
from nilometer.sql.plan.types import Types


def carried_rows(plan: JoinPlan, number: int, frame: DataFrame, *more: str) -> DataFrame:
    """The columns of a source as they are sent, what is selected, and more columns.

    A frame whose columns are sent as they are, under names that need no quotes, is left
    unchanged: renaming them would cost Spark a copy of every row.
    """
    frame = _expanded(plan, number, frame)
    if plan.sources[number].below:
        more = (f"{_selection(plan, number)} AS {SELECTED}", *more)
    if not more and is_unchanged(plan, number, frame.columns):
        return frame
    columns = carried_sql(plan, number)
    return frame.selectExpr(*(f"{sql} AS c{i}" for i, sql in enumerate(columns)), *more)


def _expanded(plan: JoinPlan, number: int, frame: DataFrame) -> DataFrame:
    """The frame, each row repeated for every item of its arrays, and kept once if it has none."""
    for one in plan.sources[number].expansions:
        names = ", ".join(map(quote_name, one.columns))
        array = spell_own(one.array.tree)
        frame = frame.selectExpr("*", f"posexplode_outer({array}) AS ({names})")
    return frame


def checked_rows(
    plan: JoinPlan, number: int, frame: DataFrame, *more: str
) -> tuple[DataFrame, tuple[str, ...]]:
    """The same, with columns that mark rows in which Spark cannot compute what is sent.

    With them come the texts of the expressions, by their numbers.
    """
    source, types = plan.sources[number], Types(plan.catalog, plan.sources)
    frame = _expanded(plan, number, frame)
    columns = dict(enumerate(carried_sql(plan, number)))
    computed = {i: sql for i, sql in columns.items() if not _is_own(source.carried[i], types)}
    checks = [Check(sql, pat.is_nested(source.carried[i].kind)) for i, sql in computed.items()]
    refs = [source.carried[i].ref for i in computed]
    texts = [f"{ref}{limit_note(tree_of(ref))}" for ref in refs]
    if source.below:
        selection = _selection(plan, number)
        checks.insert(0, Check(selection))
        said = limit_note(*(one.tree for one in source.below))
        texts.insert(0, " AND ".join(map(str, source.below)) + said)
        more = (f"{unless_failed(selection)} AS {SELECTED}", *more)
    if not checks:
        return carried_rows(plan, number, frame, *more), ()
    marked = mark_failed(frame, checks, [quote_name(name) for name in source.relation.columns])
    shown = [unless_failed(sql) if i in computed else sql for i, sql in columns.items()]
    rows = marked.selectExpr(*(f"{sql} AS c{i}" for i, sql in enumerate(shown)), *more, FAILED, ROW)
    return rows, tuple(texts)


def _selection(plan: JoinPlan, number: int) -> str:
    """The condition that selects rows of a source."""
    parts = " AND ".join(f"({spell_own(c.tree)})" for c in plan.sources[number].below)
    return f"CAST(({parts}) AS BOOLEAN)"


def times_of_rows(plan: JoinPlan, number: int, frame: DataFrame) -> DataFrame:
    """The times of a source's rows, and that of the micro-batch."""
    source = plan.sources[number]
    time = carried_sql(plan, number)[time_place(source)]
    return frame.selectExpr(f"{time} AS time", f"current_timestamp() AS {NOW}")


def carried_schema(plan: JoinPlan, number: int, frame: DataFrame) -> StructType:
    """The columns of a source as they are sent, in Spark's types."""
    frame = _expanded(plan, number, frame)
    own = {field.name: field.dataType for field in frame.schema.fields}
    source = plan.sources[number]
    types = Types(plan.catalog, plan.sources)
    if all(_is_own(one, types) and one.ref.column in own for one in source.carried):  # type: ignore[union-attr]
        names = [one.ref.column for one in source.carried]  # type: ignore[union-attr]
        return StructType([StructField(f"c{i}", own[name]) for i, name in enumerate(names)])
    return frame.selectExpr(*carried_sql(plan, number)).schema


def carried_sql(plan: JoinPlan, number: int) -> list[str]:
    """The expressions for the columns of a source that are sent."""
    types = Types(plan.catalog, plan.sources)
    return [_carried_sql(plan, number, one, types) for one in plan.sources[number].carried]


def _carried_sql(plan: JoinPlan, number: int, one: Carried, types: Types) -> str:
    source = plan.sources[number]
    if one.ref == source.time and source.relation.time is None:
        return f"timestamp_micros({EARLIEST})" if source.is_table else "current_timestamp()"
    value = one.ref.sql
    guards = guards_of(source, one)
    if guards:  # rows that are not selected need not be computable
        value = (
            f"CASE WHEN {' AND '.join(f'({spell_own(c.tree)})' for c in guards)} THEN {value} END"
        )
    return value if types.of_ref(one.ref) == one.kind else f"CAST({value} AS {type_name(one.kind)})"


def is_unchanged(plan: JoinPlan, number: int, columns: Sequence[str]) -> bool:
    """Whether the columns that are sent are exactly those of the source."""
    carried, types = plan.sources[number].carried, Types(plan.catalog, plan.sources)
    names = [one.ref.column if isinstance(one.ref, ColumnRef) else "" for one in carried]
    return (
        names == list(columns)
        and all(name.isidentifier() for name in names)
        and all(_is_own(one, types) for one in carried)
    )


def _is_own(one: Carried, types: Types) -> bool:
    plain = isinstance(one.ref, ColumnRef) and not one.ref.fields
    return plain and types.of_ref(one.ref) == one.kind
