"""EXPLAIN of plans whose answers change, and of UNION ALL: operators from the answer down."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from nilometer.sql.explain.describe_nodes import describe_node
from nilometer.sql.explain.describe_stages import describe_stages
from nilometer.sql.plan.changes_plan import ChangesPlan, Node

_WIDTH: Final = 88


def explain_changes(plan: ChangesPlan) -> str:
    """The tree of operators; a node that is used twice is described once."""
    names = [one.name for one in plan.root.columns]
    lines = ["The answer changes: rows are added (_diff > 0) and retracted (_diff < 0) at _time"]
    if plan.appends:
        lines = ["Every result is appended once"]
    lines += _wrapped(f"result    {', '.join([*names, *plan.added])}", 1)
    shared = _numbers(plan.root)
    lines += _tree(plan.root, 0, shared, set())
    for line in describe_stages(plan):
        lines += _wrapped(line, 0)
    return "\n".join(lines)


def _tree(node: Node, depth: int, shared: dict[int, int], printed: set[int]) -> Iterator[str]:
    head, details = describe_node(node)
    number = shared.get(id(node))
    mark = "" if number is None else f" (#{number})"
    if id(node) in printed:
        yield from _wrapped(f"as #{number} above", depth)
        return
    printed.add(id(node))
    yield from _wrapped(f"{head}{mark}", depth)
    for detail in details:
        yield from _wrapped(f"- {detail}", depth + 1)
    for one in node.inputs:
        yield from _tree(one, depth + 1, shared, printed)


def _wrapped(text: str, depth: int) -> list[str]:
    """A line, wrapped if it is too wide for a screen."""
    indent = "  " * min(depth, 16)
    width = _WIDTH - len(indent)
    first, *others = wrap(text, width, subsequent_indent="    ") or [""]
    return [indent + first, *(indent + other for other in others)]


def _numbers(root: Node) -> dict[int, int]:
    """Numbers for the nodes that are used more than once."""
    seen: set[int] = set()
    twice: dict[int, int] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            twice.setdefault(id(node), len(twice) + 1)
            continue
        seen.add(id(node))
        waiting += reversed(node.inputs)
    return twice
