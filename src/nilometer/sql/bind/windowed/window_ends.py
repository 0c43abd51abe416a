"""The answers of time windows, each appended once, when its window ends."""

from __future__ import annotations

from dataclasses import replace

from nilometer.errors import Place, SqlError
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_specs import SetFunction
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.lasting import LastingSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.operators.top_rows import TopRowsSpec
from nilometer.operators.window_ends import WindowEndsSpec
from nilometer.operators.window_rows import WindowRowsSpec
from nilometer.sql.plan.changes_plan import (
    Block,
    Combine,
    LastRows,
    Mined,
    Node,
    Operation,
    TableOver,
    is_static,
    names_of,
    runs,
    types_of,
)
from nilometer.sql.plan.operations import lasting

_EITHER = (SetFunction.INTERSECT, SetFunction.INTERSECT_ALL)
_BOTH = (SetFunction.DISTINCT, SetFunction.UNION)


def answer_at_ends(root: Node, place: Place) -> Node:
    """The plan of a query over windows, its answers appended."""
    _require_windows(root, place)
    if _only_comes(root):
        return _settle(root, {}, goes=False)
    if not _is_momentary(root):
        raise SqlError(
            "this answer also changes between the ends of time windows",
            place=place,
            detail="results that are appended when windows end may only use rows of those windows",
            hint="write EMIT CHANGES, or join and group rows of windows only",
        )
    spec = WindowEndsSpec(types_of(root.columns))
    return Operation(spec, (_settle(root, {}, goes=True),), names_of(root.columns))


def _require_windows(node: Node, place: Place) -> None:
    """Refuse rows of streams that are not in windows next to those that are."""
    if runs(node, WindowRowsSpec) or is_static(node):
        return
    match node:
        case Block() | LastRows() | Mined() | Operation(LastingSpec()):
            pass
        case _:
            for one in node.inputs:
                _require_windows(one, place)
            return
    stream_place = node.plan.sources[0].place if isinstance(node, Block | LastRows) else place
    raise SqlError(
        "rows of this stream are added and retracted at times other than the ends of windows",
        place=stream_place,
        hint="write EMIT CHANGES, or put this stream into windows as well: TUMBLE(TABLE S, …)",
    )


def _only_comes(node: Node) -> bool:
    """Whether rows hold for single instants, so that retractions need not be emitted."""
    match node:
        case Operation(WindowRowsSpec()):
            return True
        case TableOver() | Operation(ComputeSpec() | AggregateSpec() | UnionAllSpec()):
            return all(map(_only_comes, node.inputs))
    return False


def _is_momentary(node: Node) -> bool:
    """Whether a node holds rows only at the ends of windows."""
    match node:
        case Operation(WindowRowsSpec()):
            return True
        case Operation(AggregateSpec(keys)):
            return _is_momentary(node.inputs[0]) and (keys > 0 or _only_comes(node))
        case TableOver() | Operation(ComputeSpec() | TopRowsSpec()):
            return _is_momentary(node.inputs[0])
        case Combine():
            return any(map(_is_momentary, node.inputs))
        case Operation(UnionAllSpec()):
            return all(map(_is_momentary, node.inputs))
        case Operation(SetCountsSpec(function)):
            if function in _EITHER:
                return any(map(_is_momentary, node.inputs))
            if function in _BOTH:
                return all(map(_is_momentary, node.inputs))
            return _is_momentary(node.inputs[0])
    return False


def _settle(node: Node, done: dict[tuple[int, bool], Node], *, goes: bool) -> Node:
    """The node with operators for rows of one instant, or with retractions."""
    known = done.get((id(node), goes))
    if known is None:
        known = done[id(node), goes] = _settled(node, done, goes)
    return known


def _settled(node: Node, done: dict[tuple[int, bool], Node], goes: bool) -> Node:
    if is_static(node):
        return node
    if _only_comes(node) and goes:
        return lasting(_settle(node, done, goes=False), 0)
    if runs(node, WindowRowsSpec):
        return node
    below = tuple(_settle(one, done, goes=goes) for one in node.inputs)
    settled: Node = replace(node, inputs=below)  # type: ignore[arg-type]  # as many as before
    match settled:
        case Operation(AggregateSpec() as spec) if not goes:
            return replace(settled, spec=replace(spec, each_instant=True))
    return settled
