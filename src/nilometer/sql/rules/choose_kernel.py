"""Choose the kernel that finds candidates."""

from __future__ import annotations

from dataclasses import replace

from nilometer.kernels.chunk import Kernel
from nilometer.sql.plan.join_plan import JoinPlan


def choose_kernel(plan: JoinPlan) -> JoinPlan:
    """By key where there is one, else by time, unless the user chose another."""
    best = Kernel.HASH if plan.keys else Kernel.MERGE
    return replace(plan, kernel=plan.wanted_kernel or best)
