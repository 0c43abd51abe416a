"""Nodes whose operators need to know what their inputs hold."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.model.expressions import Argument, Expression
from nilometer.operators.change_specs import SetFunction
from nilometer.operators.compute import ComputeSpec, UnionAllSpec
from nilometer.operators.last_results import LastResultsSpec
from nilometer.operators.lasting import LastingSpec
from nilometer.operators.paced import PacedSpec
from nilometer.operators.set_counts import SetCountsSpec
from nilometer.sql.plan.changes_plan import Column, Node, Operation, names_of, types_of


def compute(
    node: Node,
    test: Expression | None,
    values: Sequence[Expression],
    columns: Sequence[Column],
    texts: Sequence[str],
) -> Operation:
    """Values, cast to the types of these columns, of the rows that pass a test."""
    spec = ComputeSpec(test, tuple(values), types_of(columns), names_of(node.columns))
    return Operation(spec, (node,), names_of(columns), tuple(texts))


def choose_columns(node: Node, places: Sequence[int]) -> Operation:
    """Some columns of a node."""
    chosen = [node.columns[place] for place in places]
    return compute(node, None, [Argument(place) for place in places], chosen, names_of(chosen))


def union_all(inputs: Sequence[Node], columns: Sequence[Column]) -> Operation:
    """All rows of all inputs."""
    return Operation(UnionAllSpec(types_of(columns)), tuple(inputs), names_of(columns))


def set_counts(
    function: SetFunction, inputs: Sequence[Node], columns: Sequence[Column]
) -> Operation:
    """Copies of each distinct row, as a set operator counts them."""
    return Operation(SetCountsSpec(function, types_of(columns)), tuple(inputs), names_of(columns))


def paced(node: Node, every: int) -> Operation:
    """The same rows; changes take effect at the next multiple of a length of time."""
    return Operation(PacedSpec(every, types_of(node.columns)), (node,), names_of(node.columns))


def lasting(node: Node, length: int) -> Operation:
    """Appended results, each kept for this long after its own time (microseconds)."""
    return Operation(LastingSpec(length, types_of(node.columns)), (node,), names_of(node.columns))


def last_results(node: Node, count: int, partition: Sequence[int]) -> Operation:
    """The last n results of an append query, or of each of its partitions."""
    spec = LastResultsSpec(count, tuple(partition), types_of(node.columns))
    return Operation(spec, (node,), names_of(node.columns))
