"""What the nodes of a windowed plan do, in words: for EXPLAIN, as text and as a drawing."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.kernels.expression_types import type_name
from nilometer.model.time import FOREVER, format_duration
from nilometer.model.time_windows import InstantWindows
from nilometer.model.windows import RangeWindow
from nilometer.operators.change_specs import AggregateCall, SetFunction, SortKey
from nilometer.sql.explain.describe_sources import source_label
from nilometer.sql.plan.changes_plan import (
    Aggregate,
    Block,
    Column,
    Combine,
    Compute,
    Counted,
    Lasting,
    LastResults,
    LastRows,
    Match,
    Mined,
    Node,
    Over,
    Paced,
    TableOver,
    TopRows,
    UnionAll,
    WindowEnds,
    WindowRows,
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
        case LastResults():
            return _last_results(node), []
        case Combine():
            return f"Incremental join of {len(node.inputs)} inputs", list(_join(node.plan))
        case Compute():
            return _compute(node), list(_selection(node.texts, node.test is not None))
        case Counted(function):
            return _COUNTED.get(function, function.value), []
        case UnionAll():
            return f"All rows of {len(node.inputs)} inputs", []
        case Aggregate():
            return _groups(node), list(_aggregate(node))
        case TopRows():
            return _top_rows(node), []
        case Paced(_, every):
            return f"Changes take effect every {format_duration(every)}", []
        case Lasting(_, length):
            return f"Results, kept for {format_duration(length)}", []
        case Mined():
            return _mined(node), list(_mined_details(node))
        case Over():
            keys = ", ".join(node.inputs[0].columns[place].name for place in node.keys)
            return f"Each row with its window (OVER){f', for each {keys}' if keys else ''}", [
                *node.texts
            ]
        case TableOver():
            return "Each row with its window (OVER)", [*node.texts]
        case Match():
            return _match(node), list(_match_details(node))
        case WindowRows(_, InstantWindows()):
            return "Each row at the instant it arrives", []
        case WindowRows():
            return f"Rows in {node.windows}", list(_window_rows(node))
        case WindowEnds():
            return "The answer at the end of each window, appended", []


def _match(node: Match) -> str:
    keys = ", ".join(node.inputs[0].columns[place].name for place in node.keys)
    return f"Matches of ({node.texts[0]}){f', for each {keys}' if keys else ''}"


def _match_details(node: Match) -> Iterator[str]:
    matching = node.matching
    yield from node.texts[1:]
    yield f"after a match: SKIP {node.skip}"
    until = "it has ended or failed"
    if matching.within is not None:
        until = f"{format_duration(matching.within)} after its first row"
    yield f"rows that may be part of a match are kept until {until}"
    if matching.back:
        rows = "the row" if matching.back == 1 else f"the {matching.back} rows"
        yield f"and {rows} before them"


def _window_rows(node: WindowRows) -> Iterator[str]:
    if node.keys:
        yield f"of each {', '.join(node.inputs[0].columns[place].name for place in node.keys)}"
    yield "kept until their windows end" if node.at_ends else "held until their windows end"


def _mined(node: Mined) -> str:
    keys = [node.inputs[0].columns[place].name for place in node.function.keys]
    each = f", for each {', '.join(keys)}" if keys else ""
    return f"{node.function.name} of the rows of the first input{each}"


def _mined_details(node: Mined) -> Iterator[str]:
    if node.every:
        yield f"answers every {format_duration(node.every)}"
    if node.function.call.window is not None:
        yield f"rows of the last {format_duration(node.function.call.window)}"
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
    kept = (f"{', '.join(one.streams)} {format_duration(one.length)}" for one in node.lifetimes)
    yield f"kept until the first of these ends: {', '.join(kept)}"


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


def _last_results(node: LastResults) -> str:
    rows = "The last result" if node.count == 1 else f"The last {node.count} results"
    partition = ", ".join(node.columns[place].name for place in node.partition)
    return f"{rows}, for each {partition}" if partition else rows


def _compute(node: Compute) -> str:
    return f"Columns {', '.join(one.name for one in node.columns)}"


def _selection(texts: tuple[str, ...], has_test: bool) -> Iterator[str]:
    if has_test and texts:
        yield f"filter: {texts[0]}"


def _groups(node: Aggregate) -> str:
    keys = ", ".join(one.name for one in node.inputs[0].columns[: node.keys])
    return f"Groups by {keys}" if keys else "One group of all rows"


def _aggregate(node: Aggregate) -> Iterator[str]:
    calls = [_call(one, node.inputs[0].columns) for one in node.calls]
    if calls:
        yield f"aggregates: {', '.join(calls)}"
    if node.test is not None and node.texts:
        yield f"having: {node.texts[0]}"


def _call(call: AggregateCall, columns: tuple[Column, ...]) -> str:
    if call.column is None:
        return call.function.value
    distinct = "DISTINCT " if call.distinct else ""
    fraction = "" if call.fraction is None else f", {call.fraction:g}"
    return f"{call.function.value}({distinct}{columns[call.column].name}{fraction})"


def _top_rows(node: TopRows) -> str:
    by = ", ".join(_sort_key(key, node.columns) for key in node.order)
    skipped = f" after the first {node.offset}" if node.offset else ""
    rows = "The first row" if node.limit == 1 else f"The first {node.limit} rows"
    return f"{rows}{skipped} by {by}"


def _sort_key(key: SortKey, columns: tuple[Column, ...]) -> str:
    direction = " DESC" if key.descending else ""
    usual = key.nulls_first != key.descending
    nulls = "" if usual else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{columns[key.column].name}{direction}{nulls}"
