"""EXPLAIN: what a plan will do."""

from __future__ import annotations
from nilometer.sql.plan import JoinPlan
from nilometer.sql.statements import ExplainFormat


def explain_plan(plan: JoinPlan, form: ExplainFormat) -> str:
    return str(plan)
