"""ALTER QUERY q SET (buckets = n, spread = m): a query goes on in other buckets.

A stopped query finishes the micro-batch that it had begun, and its state is copied beside its
checkpoint. One entry in the catalog then says that it goes on with the copy, in which every new
bucket finds what belongs to it. A process that ends before that leaves the old ones, one that
ends after it the new ones; results are in their log once either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException

from nilometer.database.bucket_options import (
    moved_of,
    moved_to,
    spreads_by_itself,
    widest_spreads,
    written,
)
from nilometer.database.known import Known
from nilometer.errors import InputError
from nilometer.local.memory_store import MemoryStore
from nilometer.log.location import storage_at
from nilometer.log.published import read_layout
from nilometer.log.writer import LogWriter
from nilometer.operators.stage import BucketRun, Stage
from nilometer.sensors.catalog.stored_queries import NamedQuery
from nilometer.spark.copy_state import copy_state
from nilometer.spark.failures import explain_failure
from nilometer.spark.start_query import Destination, stages_of, start_query
from nilometer.sql.plan.changes_plan import Plan, sources_of

Planned = tuple[Plan, Known]
_STOP_WITHIN: Final = 30


def require_changeable(after: NamedQuery, before: Planned, planned: Planned) -> None:
    """Refuse buckets in which a query cannot go on; it was, and would be, planned like this."""
    hint = f"drop {after.name}, and create it WITH ({written(after)})"
    if spreads_by_itself(after):
        hint = "leave out spread, or write a number instead of 'auto' when you create it"
    old, new = _stages(before), _stages(planned)
    if [one.names for one in old.values()] != [one.names for one in new.values()]:
        raise InputError(
            f"{after.name} was created to process each key in a single bucket",
            detail="to spread the key, results of its join must travel on to other buckets",
            hint=hint,
        )
    for name, stage in old.items():
        if stage.overheard:
            raise InputError(
                f"the buckets of {after.name} cannot be changed",
                detail="it reads a stream with `idle`, which follows the others",
                hint=hint,
            )
        runs = [BucketRun(stage, MemoryStore()) for _ in range(stage.routing.buckets)]
        for number in range(new[name].routing.buckets):
            BucketRun(new[name], MemoryStore()).take_over(runs, number)


def require_spreadable(query: NamedQuery, plan: Callable[[NamedQuery], Planned]) -> None:
    """Refuse a query that is to be spread by itself where its state cannot be dealt out."""
    if spreads_by_itself(query):
        narrow, wide = widest_spreads(query)
        require_changeable(query, plan(narrow), plan(wide))


def moves_rows(after: NamedQuery, before: Planned, planned: Planned) -> bool:
    """Whether rows go to other buckets than before; refused where state cannot follow them."""
    require_changeable(after, before, planned)
    old, new = _stages(before), _stages(planned)
    return [one.routing for one in old.values()] != [one.routing for one in new.values()]


def change_buckets(
    after: NamedQuery, before: Planned, destination: Destination, beats: int | None
) -> dict[str, Any]:
    """What the catalog keeps of a stopped query that goes on in other buckets.

    Until the catalog has that, nothing has changed.
    """
    last = _finish(*before, destination, beats)
    checkpoint = Path(destination.checkpoint)
    moved = moved_of(after)
    if last is not None and last[0] == _id_of(checkpoint):
        routings = {name: stage.routing for name, stage in _stages(before).items()}
        moved = copy_state(before[1].inputs.session, checkpoint, last, routings, moved)
    return moved_to(after, moved)


def _finish(
    plan: Plan, known: Known, destination: Destination, beats: int | None
) -> tuple[str, int] | None:
    """Have a query finish what it had begun; its last micro-batch, if it had any.

    Nothing new is read. Afterwards the logs know exactly how far it has read.
    """
    inputs = known.inputs.only(one.relation.name for one in sources_of(plan))
    logs = {name: replace(log, is_ending=True) for name, log in inputs.logs.items()}
    handle = start_query(plan, replace(inputs, logs=logs), destination, beats)
    try:
        handle.processAllAvailable()
    except PySparkException as error:
        raise explain_failure(error, "a stream") from error
    finally:
        handle.stop()
        handle.awaitTermination(_STOP_WITHIN)
    published = read_layout(storage_at(destination.location))
    assert published is not None
    with LogWriter.open(destination.location, published[0], destination.options) as log:
        return log.last_key


def _stages(planned: Planned) -> dict[str, Stage]:
    """The stages of a plan, by what they are called in its state."""
    plan, known = planned
    return stages_of(plan, known.inputs)


def _id_of(checkpoint: Path) -> str | None:
    """The id that Spark gave a query; None: it has not begun."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except FileNotFoundError:
        return None
