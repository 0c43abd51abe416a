"""A windowed plan as Graphviz text: operators, and the changes that flow between them."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.sql.explain.describe_nodes import describe_node
from nilometer.sql.explain.describe_sources import source_label
from nilometer.sql.plan.changes_plan import Block, ChangesPlan, LastRows, Node


def draw_changes(plan: ChangesPlan) -> str:
    """Graphviz text; arrows follow the rows, from streams to the answer."""
    lines = ["digraph plan {", "  rankdir=BT;", '  node [shape=box, fontname="sans-serif"];']
    numbers: dict[int, int] = {}
    lines += _draw(plan.root, numbers)
    names = ", ".join([*(one.name for one in plan.root.columns), *plan.added])
    lines += [f"  answer [shape=ellipse, label={quote(names)}];"]
    lines += [f"  n{numbers[id(plan.root)]} -> answer;", "}"]
    return "\n".join(lines)


def _draw(node: Node, numbers: dict[int, int]) -> Iterator[str]:
    if id(node) in numbers:
        return
    numbers[id(node)] = number = len(numbers)
    head, details = describe_node(node)
    yield f"  n{number} [label={quote(chr(10).join([head, *details]))}];"
    if isinstance(node, Block | LastRows):
        for place, source in enumerate(node.plan.sources):
            kind = "table" if source.is_table else "stream"
            label = quote(f"{kind} {source_label(source)}")
            yield f"  n{number}s{place} [shape=ellipse, label={label}];"
            yield f"  n{number}s{place} -> n{number};"
    for one in node.inputs:
        yield from _draw(one, numbers)
        yield f"  n{numbers[id(one)]} -> n{number};"


def quote(text: str) -> str:
    """A text as a quoted Graphviz string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
