"""The number of buckets of a query in the local runner is changed between micro-batches."""

from __future__ import annotations

from nilometer.local.run_changes import LocalChanges
from nilometer.local.run_stage import LocalStage
from nilometer.operators.stage import BucketRun, Execution, Stage
from nilometer.sql.plan.changes_plan import ChangesPlan


def change_buckets(query: LocalChanges, plan: ChangesPlan, execution: Execution) -> LocalChanges:
    """The query as it goes on under a plan that was made for another number of buckets."""
    after = LocalChanges(plan, execution)
    pairs = zip(query.stages, after.stages, strict=True)
    after.stages = [deal_out(old, new.stage) for old, new in pairs]
    return after


def deal_out(before: LocalStage, stage: Stage) -> LocalStage:
    """A stage with other buckets, and with the state of those before."""
    after = LocalStage(stage)
    if stage.routing == before.stage.routing:
        after.stores = before.stores
        after.buckets = [BucketRun(stage, store) for store in before.stores]
    for number, bucket in enumerate(after.buckets):
        bucket.take_over(before.buckets, number)
    return after
