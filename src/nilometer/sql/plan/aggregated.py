"""The node of a GROUP BY: only statements with one need its operator, which takes long to load."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.model.expressions import Expression
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_specs import AggregateCall
from nilometer.sql.plan.changes_plan import Column, Node, Operation, names_of, types_of
from nilometer.sql.plan.unbounded import only_grows


def aggregate(
    node: Node,
    keys: int,
    calls: Sequence[AggregateCall],
    test: Expression | None,
    values: Sequence[Expression],
    columns: Sequence[Column],
    texts: Sequence[str],
) -> Operation:
    """One row per group, if it passes a test; the first columns of the rows are the keys.

    Test and values are computed from the keys, followed by the results of the calls. Without keys
    there is always one group.
    """
    names = names_of(node.columns)
    spec = AggregateSpec(
        keys,
        types_of(node.columns),
        tuple(calls),
        test,
        tuple(values),
        types_of(columns),
        (*names[:keys], *(_call_text(call, names) for call in calls)),
        only_grows=only_grows(node),
    )
    return Operation(spec, (node,), names_of(columns), tuple(texts))


def _call_text(call: AggregateCall, names: Sequence[str]) -> str:
    """A call as a user would write it."""
    if call.column is None:
        return str(call.function)
    distinct = "DISTINCT " if call.distinct else ""
    return f"{call.function}({distinct}{names[call.column]})"
