"""Treat conditions on differences of times as windows."""

from __future__ import annotations

from dataclasses import replace

from nilometer.errors import Place
from nilometer.model.windows import Window
from nilometer.sql.plan.join_plan import JoinPlan
from nilometer.sql.plan.time_bounds import time_window


def bound_times(plan: JoinPlan) -> JoinPlan:
    """Move such conditions from the conditions to the windows."""
    windows: list[tuple[Window, Place]] = []
    conditions = []
    for condition in plan.conditions:
        window = time_window(condition, plan.sources)
        if window is None:
            conditions.append(condition)
        else:
            windows.append((window, condition.place))
    return replace(
        plan,
        windows=(*plan.windows, *(window for window, _ in windows)),
        time_conditions=tuple(windows),
        conditions=tuple(conditions),
    )
