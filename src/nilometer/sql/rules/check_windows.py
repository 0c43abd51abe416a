"""Check that the windows are consistent, and that every row expires."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.errors import ContradictionError, Place, WindowError
from nilometer.model.windows import Bound
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.window_hints import window_error


def check_windows(plan: JoinPlan) -> JoinPlan:
    """Refuse windows that contradict each other or leave a stream unbounded."""
    try:
        _ = plan.network
    except WindowError as error:
        raise window_error(error, _place(plan, error)) from error
    return plan


def _place(plan: JoinPlan, error: WindowError) -> Place:
    """The position of a contradicting condition, the WINDOW clause, or the stream in FROM."""
    conditions = _conditions_in(plan, error.streams)
    if isinstance(error, ContradictionError) and (place := next(conditions, None)) is not None:
        return place
    if plan.windows_place is not None:
        return plan.windows_place
    return plan.by_name[error.streams[0]].place


def _conditions_in(plan: JoinPlan, cycle: tuple[str, ...]) -> Iterator[Place]:
    """The conditions that set the bounds along a cycle of streams."""
    edges = set(zip(cycle, cycle[1:] + cycle[:1], strict=True))
    for window, place in plan.time_conditions:
        for bound in window.bounds(()):
            if (bound.earlier, bound.later) in edges and bound.limit == _tightest(plan, bound):
                yield place


def _tightest(plan: JoinPlan, of: Bound) -> int:
    """The smallest limit that any window sets on the difference of the same two times."""
    timed = [source.name for source in plan.sources if not source.is_table]
    bounds = (bound for window in plan.windows for bound in window.bounds(timed))
    return min(b.limit for b in bounds if (b.earlier, b.later) == (of.earlier, of.later))
