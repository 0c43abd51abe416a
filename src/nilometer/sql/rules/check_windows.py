"""The windows can hold together, and let go of every row."""

from __future__ import annotations

from nilometer.errors import SqlWindowError, WindowError
from nilometer.sql.plan import JoinPlan
from nilometer.sql.window_hints import in_sql


def check_windows(plan: JoinPlan) -> JoinPlan:
    """Refuse windows that contradict each other or leave a stream unbounded."""
    try:
        _ = plan.network
    except WindowError as error:
        raise SqlWindowError(
            error.message, place=plan.windows_place, detail=error.detail, hint=in_sql(error.hint)
        ) from None
    return plan
