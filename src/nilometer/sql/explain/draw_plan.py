"""A plan as Graphviz text: the constraint graph, and the path of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nilometer.model.time import FOREVER, format_duration
from nilometer.sql.explain.draw_changes import quote
from nilometer.sql.plan.changes_plan import UnionPlan
from nilometer.sql.plan.join_plan import JoinPlan

_HEAD: Final = ("digraph plan {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];')


def draw_plan(plan: JoinPlan) -> str:
    """Graphviz text; an arrow i -> j is labelled with how much later j may be; dashed: derived."""
    return "\n".join([*_HEAD, *_clusters(plan, ""), "}"])


def draw_union(plan: UnionPlan) -> str:
    """The same for several queries whose results are combined."""
    lines = [*_HEAD, '  union [label="all results"];']
    for number, one in enumerate(plan.plans):
        lines += [*_clusters(one, f"q{number}_"), f"  q{number}_result -> union;"]
    return "\n".join([*lines, "}"])


def _clusters(plan: JoinPlan, query: str) -> Iterator[str]:
    """The windows and the plan of one query; its name prefixes all others."""
    yield from (f"  subgraph cluster_{query}windows {{", '    label="windows";')
    yield from _windows(plan, query)
    yield from ("  }", f"  subgraph cluster_{query}plan {{", '    label="plan";')
    yield from _flow(plan, query)
    yield "  }"


def _windows(plan: JoinPlan, query: str) -> Iterator[str]:
    timed = [i for i, source in enumerate(plan.sources) if not source.is_table]
    for i in timed:
        rows = plan.sources[i].rows
        label = plan.sources[i].name + ("" if rows is None else f" {rows}")
        yield f"    {query}w{i} [shape=ellipse, label={quote(label)}];"
    for i in timed:
        for j in timed:
            bound = plan.network.closed[i][j]
            if i != j and bound < FOREVER:
                style = "solid" if plan.network.given[i][j] == bound else "dashed"
                label = quote(f"<= {format_duration(bound)}")
                yield f"    {query}w{i} -> {query}w{j} [label={label}, style={style}];"


def _flow(plan: JoinPlan, query: str) -> Iterator[str]:
    keys = [
        " = ".join(str(member) for member in equal.members)
        for key in plan.keys
        for equal in key.classes
    ]
    tests = [str(condition) for condition in plan.residuals]
    how = plan.kernel.value if plan.algorithm is None else plan.algorithm.name
    join = "\n".join(["window join", how, *keys, *tests])
    for i, source in enumerate(plan.sources):
        kind = "table" if source.is_table else "stream"
        yield f"    {query}s{i} [label={quote(f'{kind} {source.relation.name} as {source.name}')}];"
        selection = "\n".join(str(c) for c in (*source.below, *source.above))
        carried = ", ".join(str(one.ref) for one in source.carried)
        pack = "\n".join(filter(None, ["pack", selection, carried]))
        yield f"    {query}p{i} [label={quote(pack)}];"
        yield f"    {query}s{i} -> {query}p{i};"
        yield f"    {query}p{i} -> {query}join;"
    yield f"    {query}join [label={quote(join)}];"
    after = [str(condition) for condition in plan.after]
    items = ", ".join(item.name for item in plan.items)
    yield f"    {query}result [label={quote(chr(10).join(['result', *after, items]))}];"
    yield f"    {query}join -> {query}result;"
