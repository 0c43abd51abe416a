"""A plan as data to draw: the constraint graph, the operators, the result."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.errors import ContradictionError
from nilometer.sql.explain.describe_nodes import describe_node
from nilometer.sql.explain.describe_sources import source_label
from nilometer.sql.explain.describe_stages import describe_stages
from nilometer.sql.explain.explain_plan import describe_routing
from nilometer.sql.explain.picture_graph import (
    ConstraintGraph,
    picture_block,
    picture_cycle,
    picture_windows,
)
from nilometer.sql.explain.picture_join import PlanStep, picture_join
from nilometer.sql.plan.changes_plan import (
    Block,
    ChangesPlan,
    LastRows,
    Node,
    Plan,
    UnionPlan,
    leaves_of,
)
from nilometer.sql.plan.join_plan import JoinPlan


@dataclass(frozen=True)
class QueryPicture:
    """What a statement will do; `dataclasses.asdict` turns it into plain lists and strings."""

    emits: str
    """"append", "changelog", or "nothing" if its windows contradict each other."""
    columns: tuple[str, ...]
    """The columns of the result."""
    graphs: tuple[ConstraintGraph, ...]
    """The streams and the windows between them: one graph for each join."""
    plan: PlanStep | None
    """The operators, from the answer down."""
    stages: tuple[str, ...]
    """Where it runs."""
    cycle: str | None = None
    """Why the windows contradict each other, if they do; the graph is that of the cycle."""


def picture_plan(plan: Plan) -> QueryPicture:
    """The picture of a plan."""
    match plan:
        case ChangesPlan():
            return _changes(plan)
        case UnionPlan():
            return _union(plan)
    return _join(plan)


def picture_contradiction(error: ContradictionError) -> QueryPicture:
    """The picture of windows that contradict each other."""
    message = ": ".join(filter(None, (error.message, error.detail)))
    return QueryPicture("nothing", (), (picture_cycle(error),), None, (), message)


def _join(plan: JoinPlan) -> QueryPicture:
    columns = tuple(item.name for item in plan.items)
    step, stages = picture_join(plan), tuple(describe_routing(plan))
    return QueryPicture("append", columns, (picture_windows(plan, ""),), step, stages)


def _union(plan: UnionPlan) -> QueryPicture:
    graphs = tuple(
        picture_windows(one, f"Query {number}") for number, one in enumerate(plan.plans, start=1)
    )
    step = PlanStep(
        f"All results of {len(plan.plans)} queries",
        ("every result is appended once",),
        tuple(map(picture_join, plan.plans)),
    )
    stages = tuple(
        f"Query {number}: {line.strip()}"
        for number, one in enumerate(plan.plans, start=1)
        for line in describe_routing(one)
    )
    columns = tuple(item.name for item in plan.plans[0].items)
    return QueryPicture("append", columns, graphs, step, stages)


def _changes(plan: ChangesPlan) -> QueryPicture:
    columns = (*(one.name for one in plan.root.columns), *plan.added)
    emits = "append" if plan.appends else "changelog"
    leaves = [one for one in leaves_of(plan.root) if _has_streams(one)]
    graphs = [picture_block(one, describe_node(one)[0]) for one in leaves]
    step = _step(plan.root, set())
    return QueryPicture(emits, columns, tuple(graphs), step, tuple(describe_stages(plan)))


def _has_streams(leaf: Block | LastRows) -> bool:
    return any(not source.is_table for source in leaf.plan.sources)


def _step(node: Node, seen: set[int]) -> PlanStep:
    """A node and what is below it; a node that is used again is only named again."""
    head, details = describe_node(node)
    if id(node) in seen:
        return PlanStep(head, ("the same as above",), ())
    seen.add(id(node))
    inputs = tuple(_step(one, seen) for one in node.inputs)
    if isinstance(node, Block | LastRows) and len(node.plan.sources) > 1:
        inputs = tuple(
            PlanStep(f"{'Table' if one.is_table else 'Stream'} {source_label(one)}", (), ())
            for one in node.plan.sources
        )
    return PlanStep(head, tuple(details), inputs)
