"""A plan as Graphviz text: the constraint graph, and the way of the rows."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.model.time import FOREVER, format_duration
from nilometer.sql.plan import JoinPlan


def draw_plan(plan: JoinPlan) -> str:
    """Graphviz text; an arrow i -> j bears how much later j may be than i, dashed if derived."""
    lines = ["digraph plan {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    lines += ["  subgraph cluster_windows {", '    label="windows";', *_windows(plan), "  }"]
    lines += ["  subgraph cluster_plan {", '    label="plan";', *_flow(plan), "  }", "}"]
    return "\n".join(lines)


def _windows(plan: JoinPlan) -> Iterator[str]:
    timed = [i for i, source in enumerate(plan.sources) if not source.is_table]
    for i in timed:
        rows = plan.sources[i].rows
        label = plan.sources[i].name + ("" if rows is None else f" {rows}")
        yield f"    w{i} [shape=ellipse, label={_quote(label)}];"
    for i in timed:
        for j in timed:
            bound = plan.network.closed[i][j]
            if i != j and bound < FOREVER:
                style = "solid" if plan.network.given[i][j] == bound else "dashed"
                label = _quote(f"<= {format_duration(bound)}")
                yield f"    w{i} -> w{j} [label={label}, style={style}];"


def _flow(plan: JoinPlan) -> Iterator[str]:
    keys = [
        " = ".join(str(member) for member in equal.members)
        for key in plan.keys
        for equal in key.classes
    ]
    tests = [str(condition) for condition in plan.residuals]
    join = "\n".join(["window join", plan.kernel.value, *keys, *tests])
    for i, source in enumerate(plan.sources):
        kind = "table" if source.is_table else "stream"
        yield f"    s{i} [label={_quote(f'{kind} {source.relation.name} as {source.name}')}];"
        selection = "\n".join(str(c) for c in (*source.below, *source.above))
        carried = ", ".join(str(one.ref) for one in source.carried)
        pack = "\n".join(filter(None, ["pack", selection, carried]))
        yield f"    p{i} [label={_quote(pack)}];"
        yield f"    s{i} -> p{i};"
        yield f"    p{i} -> join;"
    yield f"    join [label={_quote(join)}];"
    after = [str(condition) for condition in plan.after]
    items = ", ".join(item.name for item in plan.items)
    yield f"    result [label={_quote(chr(10).join(['result', *after, items]))}];"
    yield "    join -> result;"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
