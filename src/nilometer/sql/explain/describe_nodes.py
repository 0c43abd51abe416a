"""What the nodes of a windowed plan do, in words: for EXPLAIN, as text and as a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nilometer.kernels.expression_types import type_name
from nilometer.model.time import FOREVER, format_duration
from nilometer.model.time_windows import InstantWindows
from nilometer.model.windows import RangeWindow
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_specs import AggregateCall, SetFunction, SortKey
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.last_results import LastResultsSpec
from nilometer.operators.lasting import LastingSpec
from nilometer.operators.paced import PacedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.operators.window_ends import WindowEndsSpec
from nilometer.operators.window_rows import WindowRowsSpec
from nilometer.sql.explain.describe_sources import source_label
from nilometer.sql.plan.changes_plan import (
    Block,
    Combine,
    LastRows,
    Match,
    Mined,
    Node,
    Operation,
    Over,
    TableOver,
    names_of,
)
from nilometer.sql.plan.join_plan import JoinPlan, Source
from nilometer.sql.sensor_conditions import describe_sensors

_COUNTED = {
    SetFunction.DISTINCT: "Distinct rows",
    SetFunction.WITH: "Rows that are in both",
    SetFunction.WITHOUT: "Rows of the first that are not in the second",
}


def describe_node(node: Node) -> tuple[str, list[str]]:
    """What a node does, and its details."""
    match node:
        case Block():
            return _block(node), [*_lifetimes(node), *_windows(node.plan), *_join(node.plan)]
        case LastRows():
            return _last_rows(node.plan.sources[0]), list(_join(node.plan))
        case Combine():
            return f"Incremental join of {len(node.inputs)} inputs", list(_join(node.plan))
        case Mined():
            return _mined(node), list(_mined_details(node))
        case Over():
            keys = _names(node, node.spec.keys)
            return f"Each row with its window (OVER){f', for each {keys}' if keys else ''}", [
                *node.texts
            ]
        case TableOver():
            return "Each row with its window (OVER)", [*node.texts]
        case Match():
            return _match(node), list(_match_details(node))
        case Operation(LastResultsSpec() as spec):
            return _last_results(node, spec), []
        case Operation(ComputeSpec(test)):
            details = [f"filter: {node.texts[0]}"] if test is not None and node.texts else []
            return f"Columns {', '.join(node.names)}", details
        case Operation(SetCountsSpec(function)):
            return _COUNTED.get(function, function.value), []
        case Operation(UnionAllSpec()):
            return f"All rows of {len(node.inputs)} inputs", []
        case Operation(AggregateSpec() as spec):
            return _groups(node, spec), list(_aggregate(node, spec))
        case Operation(TopRowsSpec() as spec):
            return _top_rows(spec, node.names), []
        case Operation(PacedSpec(every)):
            return f"Changes take effect every {format_duration(every)}", []
        case Operation(LastingSpec(length)):
            return f"Results, kept for {format_duration(length)}", []
        case Operation(WindowRowsSpec(InstantWindows())):
            return "Each row at the instant it arrives", []
        case Operation(WindowRowsSpec() as spec):
            return f"Rows in {spec.windows}", list(_window_rows(node, spec))
        case Operation(WindowEndsSpec()):
            return "The answer at the end of each window, appended", []
    raise AssertionError(node)


def _names(node: Operation, places: Sequence[int]) -> str:
    """Columns of the rows that a node takes."""
    return ", ".join(node.inputs[0].columns[place].name for place in places)


def _match(node: Match) -> str:
    keys = _names(node, node.spec.keys)
    return f"Matches of ({node.texts[0]}){f', for each {keys}' if keys else ''}"


def _match_details(node: Match) -> Iterator[str]:
    matching = node.spec.matching
    yield from node.texts[1:]
    yield f"after a match: SKIP {node.skip}"
    until = "it has ended or failed"
    if matching.within is not None:
        until = f"{format_duration(matching.within)} after its first row"
    yield f"rows that may be part of a match are kept until {until}"
    if matching.back:
        rows = "the row" if matching.back == 1 else f"the {matching.back} rows"
        yield f"and {rows} before them"


def _window_rows(node: Operation, spec: WindowRowsSpec) -> Iterator[str]:
    if spec.keys:
        yield f"of each {_names(node, spec.keys)}"
    yield "kept until their windows end" if spec.at_ends else "held until their windows end"


def _mined(node: Mined) -> str:
    function = node.spec.function
    each = f", for each {_names(node, function.keys)}" if function.keys else ""
    return f"{function.name} of the rows of the first input{each}"


def _mined_details(node: Mined) -> Iterator[str]:
    from nilometer.mining.hosted_answers import AnswersSpec  # noqa: PLC0415  rarely needed

    if isinstance(node.spec, AnswersSpec):
        yield f"answers every {format_duration(node.spec.every)}"
    if (window := node.spec.function.call.window) is not None:
        yield f"rows of the last {format_duration(window)}"
    yield from node.texts


def _block(node: Block) -> str:
    names = ", ".join(map(source_label, node.plan.sources))
    if len(node.plan.sources) > 1:
        return f"Window join of {names}"
    kind = "table" if node.plan.sources[0].is_table else "stream"
    return f"Rows of the {kind} {names}"


def _lifetimes(node: Block) -> Iterator[str]:
    if not node.lifetimes:
        static = all(source.is_table for source in node.plan.sources)
        yield "kept forever" if static else "passed on as they arrive"
        return
    if any(one.length >= FOREVER for one in node.lifetimes):
        yield "aggregated forever, not kept"
        return
    if node.lifetimes[0].until is not None:
        yield f"kept until {node.lifetimes[0].until.column}"
        return
    if len(node.lifetimes) == 1:
        one = node.lifetimes[0]
        latest = f" after the latest of {', '.join(one.streams)}" if len(one.streams) > 1 else ""
        yield f"kept for {format_duration(one.length)}{latest}"
        return
    spans = (f"{', '.join(one.streams)} {format_duration(one.length)}" for one in node.lifetimes)
    yield f"kept until the first of these ends: {', '.join(spans)}"


def _windows(plan: JoinPlan) -> Iterator[str]:
    windows = [str(w) for w in plan.windows if not isinstance(w, RangeWindow)]
    if windows and len(plan.sources) > 1:
        yield f"windows: {' AND '.join(dict.fromkeys(windows))}"


def _join(plan: JoinPlan) -> Iterator[str]:
    for source in plan.sources:
        if (sensors := describe_sensors(plan, source)) is not None:
            yield f"sensors: {sensors}"
        if source.relation.waits:
            yield f"silent sensors of {source.name}: {source.relation.waits}"
        if source.rows is not None and len(plan.sources) > 1:
            yield f"{source.name} {source.rows}"
        yield from (f"filter: {condition}" for condition in (*source.below, *source.above))
    for key in plan.keys:
        for equal in key.classes:
            members = " = ".join(map(str, equal.members))
            yield f"key: {members} ({type_name(equal.kind)})"
    yield from (f"join condition: {condition}" for condition in plan.residuals)


def _last_rows(source: Source) -> str:
    assert source.rows is not None
    count = source.rows.count
    rows = "The last row" if count == 1 else f"The last {count} rows"
    partition = ", ".join(map(str, source.rows.partition))
    each = f", for each {partition}" if partition else ""
    return f"{rows} of the stream {source_label(source)}{each}"


def _last_results(node: Operation, spec: LastResultsSpec) -> str:
    rows = "The last result" if spec.count == 1 else f"The last {spec.count} results"
    partition = ", ".join(node.names[place] for place in spec.partition)
    return f"{rows}, for each {partition}" if partition else rows


def _groups(node: Operation, spec: AggregateSpec) -> str:
    keys = _names(node, range(spec.keys))
    return f"Groups by {keys}" if keys else "One group of all rows"


def _aggregate(node: Operation, spec: AggregateSpec) -> Iterator[str]:
    calls = [_call(one, names_of(node.inputs[0].columns)) for one in spec.calls]
    if calls:
        yield f"aggregates: {', '.join(calls)}"
    if spec.test is not None and node.texts:
        yield f"having: {node.texts[0]}"


def _call(call: AggregateCall, names: Sequence[str]) -> str:
    if call.column is None:
        return call.function.value
    distinct = "DISTINCT " if call.distinct else ""
    fraction = "" if call.fraction is None else f", {call.fraction:g}"
    return f"{call.function.value}({distinct}{names[call.column]}{fraction})"


def _top_rows(spec: TopRowsSpec, names: Sequence[str]) -> str:
    by = ", ".join(_sort_key(key, names) for key in spec.order)
    skipped = f" after the first {spec.offset}" if spec.offset else ""
    rows = "The first row" if spec.limit == 1 else f"The first {spec.limit} rows"
    return f"{rows}{skipped} by {by}"


def _sort_key(key: SortKey, names: Sequence[str]) -> str:
    direction = " DESC" if key.descending else ""
    usual = key.nulls_first != key.descending
    nulls = "" if usual else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{names[key.column]}{direction}{nulls}"
