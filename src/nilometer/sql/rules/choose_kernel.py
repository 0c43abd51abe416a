"""How candidates are found."""

from __future__ import annotations

from dataclasses import replace

from nilometer.kernels.chunk import Kernel
from nilometer.sql.plan import JoinPlan


def choose_kernel(plan: JoinPlan) -> JoinPlan:
    """By key where there is one, else by time; a user who chose another has it."""
    if plan.kernel is Kernel.NESTED:
        return plan
    return replace(plan, kernel=Kernel.HASH if plan.keys else Kernel.MERGE)
