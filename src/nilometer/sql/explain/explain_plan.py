"""EXPLAIN: what a plan does, what it keeps in memory and for how long, as stable text."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.model.names import count
from nilometer.model.time import FOREVER, format_duration
from nilometer.operators.join_orders import ASSUMED_DISTINCT, ASSUMED_RATE, ASSUMED_TABLE
from nilometer.sql.explain.describe_sources import (
    describe_kernel,
    how_long,
    kept_columns,
    key_label,
    source_label,
)
from nilometer.sql.explain.draw_changes import draw_changes
from nilometer.sql.explain.draw_plan import draw_plan, draw_union
from nilometer.sql.explain.explain_changes import explain_changes
from nilometer.sql.expressions.scalars import ColumnRef
from nilometer.sql.parse.query_text import ExplainFormat
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan, Source
from nilometer.sql.sensor_conditions import describe_sensors


def explain_plan(plan: Plan, form: ExplainFormat = ExplainFormat.TEXT) -> str:
    """The plan as text, or as Graphviz text."""
    is_drawn = form is ExplainFormat.DOT
    match plan:
        case ChangesPlan():
            return draw_changes(plan) if is_drawn else explain_changes(plan)
        case UnionPlan():
            return draw_union(plan) if is_drawn else _union(plan)
    return draw_plan(plan) if is_drawn else _join(plan)


def named_engine(plan: str, engine: str) -> str:
    """A plan as text, followed by the engine that runs it."""
    return plan if plan.startswith("digraph") else f"{plan.rstrip()}\nEngine: {engine}"


def _union(plan: UnionPlan) -> str:
    lines = [f"UNION ALL of {len(plan.plans)} queries; every result is appended once"]
    lines.append(f"  result    {', '.join(item.name for item in plan.plans[0].items)}")
    for number, one in enumerate(plan.plans, start=1):
        lines.append(f"Query {number}")
        lines += [f"  {line}" for line in _join(one).splitlines()]
    return "\n".join(lines)


def _join(plan: JoinPlan) -> str:
    sections = (_head, _windows, _kept, _matching, _orders, describe_routing)
    return "\n".join(line for section in sections for line in section(plan))


def _head(plan: JoinPlan) -> Iterator[str]:
    tables = sum(source.is_table for source in plan.sources)
    streams = len(plan.sources) - tables
    parts = [count(streams, "stream"), *([count(tables, "table")] if tables else [])]
    what = "Window join of" if len(plan.sources) > 1 else "Selection from"
    yield f"{what} {' and '.join(parts)}; every result is appended once"
    yield f"  result    {', '.join(item.name for item in plan.items)}"


def _windows(plan: JoinPlan) -> Iterator[str]:
    timed = [i for i, source in enumerate(plan.sources) if not source.is_table]
    if len(timed) < 2:
        return
    written = list(dict.fromkeys(map(str, plan.windows)))
    yield f"Windows: {' AND '.join(written) or 'none'}"
    yield (
        "  how much later a top stream's row may be than a left one's; "
        "* is derived from other windows"
    )
    names = [plan.sources[i].name for i in timed]
    rows = [[_cell(plan, i, j) for j in timed] for i in timed]
    widths = [max(len(name), *(len(row[c]) for row in rows)) for c, name in enumerate(names)]
    first = max(map(len, names))
    yield f"  {'':{first}}  {'  '.join(n.rjust(w) for n, w in zip(names, widths, strict=True))}"
    for name, row in zip(names, rows, strict=True):
        cells = "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
        yield f"  {name:{first}}  {cells}"


def _cell(plan: JoinPlan, i: int, j: int) -> str:
    """A bound of the closure, marked if derived, with the given bound if that was wider."""
    if i == j:
        return "-"
    written, closed = plan.network.given[i][j], plan.network.closed[i][j]
    if closed >= FOREVER:
        return "any"
    text = format_duration(closed)
    if written >= FOREVER:
        return f"{text}*"
    return text if written == closed else f"{text}* (given {format_duration(written)})"


def _kept(plan: JoinPlan) -> Iterator[str]:
    yield "State per source: columns, and how long they are kept (t is the row's time)"
    width = max(len(source_label(source)) for source in plan.sources)
    for number, source in enumerate(plan.sources):
        shown = ", ".join(kept_columns(plan, number)) or "its time"
        yield f"  {source_label(source):{width}}  {shown}"
        yield f"  {'':{width}}  {how_long(plan, number)}"


def _matching(plan: JoinPlan) -> Iterator[str]:
    for source in plan.sources:
        if (sensors := describe_sensors(plan, source)) is not None:
            yield f"Sensors: {sensors}"
        for condition in source.below:
            yield f"Filter before the join: {condition}"
        for condition in source.above:
            yield f"Filter after the ROWS window of {source.name}: {condition}"
    for key in plan.keys:
        yield f"Key: {key_label(key)}"
    for condition in plan.residuals:
        yield f"Join condition: {condition}"
    for condition in plan.after:
        yield f"Condition checked by Spark after the join: {condition}"
    if plan.algorithm is not None:
        chosen = plan.algorithm
        yield f"Algorithm: {chosen.name} ({chosen.paper}), one tuple at a time"
        for name, text in plan.algorithm.parameters.given.items():
            yield f"  {name}: {text}"
    elif len(plan.sources) > 1:
        yield f"Kernel: {describe_kernel(plan.kernel)}"


def _orders(plan: JoinPlan) -> Iterator[str]:
    if len(plan.sources) < 2 or plan.algorithm is not None:
        return
    yield f"Probe order of new rows ({_basis(plan)})"
    names = [source.name for source in plan.sources]
    width = max(map(len, names))
    for name, order, source, cost in zip(names, plan.orders, plan.sources, plan.costs, strict=True):
        if not source.is_table:
            then = ", ".join(names[j] for j in order)
            yield f"  new {name:{width}}  {then}  ({cost:,.4g} rows probed per second)"


def _basis(plan: JoinPlan) -> str:
    """What the costs are based on."""
    assumed = []
    if any(s.relation.statistics.rate is None and not s.is_table for s in plan.sources):
        assumed.append(f"{ASSUMED_RATE:g} row/s")
    if any(_lacks_distinct(source, plan) for source in plan.sources):
        assumed.append(f"{ASSUMED_DISTINCT:g} values")
    if any(source.is_table for source in plan.sources):
        assumed.append(f"{ASSUMED_TABLE:g} rows per table")
    if not assumed:
        is_measured = any(source.relation.statistics.is_measured for source in plan.sources)
        return f"as {'measured' if is_measured else 'declared'}; chosen again as rates change"
    return f"assuming {', '.join(assumed)} until measured"


def _lacks_distinct(source: Source, plan: JoinPlan) -> bool:
    refs = [
        equal.of(source.name).ref
        for key in plan.keys
        if source.name in key.streams
        for equal in key.classes
    ]
    known = source.relation.statistics.distinct
    return any(not isinstance(ref, ColumnRef) or ref.path not in known for ref in refs)


def describe_routing(plan: JoinPlan) -> Iterator[str]:
    """How many buckets a join runs in, and why."""
    assert plan.routing is not None
    buckets = count(plan.routing.buckets, "bucket")
    grid = " x ".join(map(str, plan.routing.shares))
    shape = f", a grid of {grid}" if len(plan.routing.shares) > 1 else ""
    copies = [
        f"{source.name} {plan.routing.copies(i)} times"
        for i, source in enumerate(plan.sources)
        if plan.routing.copies(i) > 1
    ]
    yield f"Runs in one stage of {buckets}{shape}: {plan.routing_reason}"
    if copies:
        yield f"  replicated to several buckets: {', '.join(copies)}"
