"""The queries of a bucket in the memory of a process, and the sub-plans that they share.

Every query has all of its state in the bucket's files, by itself or by way of another one that has
the same sub-plan. So one that leaves the others, whatever the reason, goes on from there.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nilometer.engine.bucket_files import BucketFolder, KeptQuery
from nilometer.engine.place import EnginePlace, WorkRecord
from nilometer.engine.plan_set import PlanEntry, PlanSet
from nilometer.engine.query_run import HostedRun
from nilometer.engine.sharing import Sharing
from nilometer.engine.subplan import Above, SubPlan, cut_subplan
from nilometer.engine.subplan_run import SubPlanRun

if TYPE_CHECKING:
    from nilometer.engine.plan import HostedPlan  # loads all of SQL


@dataclass
class HeldQuery:
    """A query in the memory of this process."""

    run: HostedRun
    entry: PlanEntry
    number: int
    """The bucket's file in which its state is the one in memory; -1: it has none yet."""
    results: int
    """How many times it has had results to append."""
    watermark: int | None = None
    """The watermark that its results last reported."""
    seconds: float = 0.0
    """How long its last micro-batch took, with its part of what it shares."""


@dataclass(frozen=True)
class _Loaded:
    """A plan, and where it is cut."""

    hosted: HostedPlan
    subplan: SubPlan
    above: tuple[Above, ...]


class HeldQueries:
    """The queries of one bucket."""

    def __init__(
        self,
        place: EnginePlace,
        files: BucketFolder,
        at_work: WorkRecord,
        kept: Mapping[str, KeptQuery],
    ) -> None:
        """`kept` is what the files hold, as far as they have been read."""
        self._place = place
        self._files = files
        self._at_work = at_work
        self._kept = kept
        self._held: dict[str, HeldQuery] = {}
        self._loaded: dict[str, _Loaded] = {}
        self._sharing = Sharing()

    def find(self, query: str) -> HeldQuery | None:
        return self._held.get(query)

    def forget(self, query: str) -> None:
        self._held.pop(query, None)

    def forget_all(self) -> None:
        """Go on from the files: what is in memory may be ahead of them."""
        self._held.clear()

    def keep(self, plans: PlanSet, running: Iterable[PlanEntry]) -> None:
        """Forget queries that do not run as they did."""
        wanted = {one.plan for one in running}
        self._loaded = {name: one for name, one in self._loaded.items() if name in wanted}
        for query, held in list(self._held.items()):
            now, before = plans.entries.get(query), held.entry
            if now is None or (now.plan, now.attempt) != (before.plan, before.attempt):
                del self._held[query]

    def subplans(self) -> list[SubPlanRun]:
        """All sub-plans, each once."""
        return list(
            {held.run.subplan.tag: held.run.subplan for held in self._held.values()}.values()
        )

    def resume_all(self, waiting: Sequence[PlanEntry]) -> None:
        """Restore queries from the files, and find those that can share a sub-plan."""
        there = {
            held.run.subplan.tag for query, held in self._held.items() if self._has(query, held)
        }
        for query, held in list(self._held.items()):
            if held.run.subplan.tag not in there:  # whoever had it in the files is gone
                del self._held[query]
        for one in waiting:
            kept = self._kept.get(one.query)
            if kept is None or kept.failed != one.attempt:
                with suppress(Exception):  # it is reported when it is the query's turn
                    self.resume(one, alone=False)
        self._sharing.find(held.run for held in self._held.values())
        for subplan in self.subplans():
            subplan.sharing = 0
        for held in self._held.values():
            held.run.subplan.sharing += 1

    def resume(self, one: PlanEntry, *, alone: bool = True) -> HeldQuery:
        """Restore a query from the files, with a sub-plan of its own or one that has its state."""
        before = self._held.get(one.query)
        if before is not None and self._is_current(one.query, before):
            return before
        assert one.plan is not None
        self._at_work.begin(one.query)
        kept, loaded = self._kept.get(one.query), self._load(one.plan)
        kept = None if kept is None or kept.state is None else kept
        subplan = None if alone else self._subplan_like(loaded.subplan, kept)
        if kept is None:
            subplan = subplan or self._begin(loaded.subplan)
            held = HeldQuery(HostedRun(loaded.hosted, loaded.above, subplan), one, -1, 0)
        else:
            assert kept.about is not None
            assert kept.state is not None
            state = json.loads(self._files.read(kept.state))
            subplan = subplan or self._restore(loaded.subplan, one.query, kept, before)
            run = HostedRun(loaded.hosted, loaded.above, subplan)
            run.check(json.loads(self._files.read(kept.about)))
            run.counted = state.get("counted", run.counted)  # which earlier ones lack
            held = HeldQuery(run, one, kept.number, state["results"], state["watermark"])
        self._held[one.query] = held
        return held

    def _load(self, plan: str) -> _Loaded:
        if plan not in self._loaded:
            hosted = pickle.loads(self._place.plan(plan))
            self._loaded[plan] = _Loaded(hosted, *cut_subplan(hosted))
        return self._loaded[plan]

    def _subplan_like(self, plan: SubPlan, kept: KeptQuery | None) -> SubPlanRun | None:
        """A sub-plan that does the same, and is in the state that a query has in the files."""
        starts = [one.start for one in plan.feeds]
        for subplan in self.subplans() if plan.key is not None else ():
            is_there = (
                subplan.is_new and subplan.positions == starts
                if kept is None
                else subplan.at == kept.subplan
            )
            if is_there and subplan.plan.key == plan.key:
                return subplan
        return None

    def _begin(self, plan: SubPlan) -> SubPlanRun:
        subplan = SubPlanRun(plan, self._files.read)
        subplan.begin()
        return subplan

    def _restore(
        self, plan: SubPlan, query: str, kept: KeptQuery, before: HeldQuery | None
    ) -> SubPlanRun:
        assert kept.subplan is not None
        subplan = SubPlanRun(plan, self._files.read)
        if before is not None:
            subplan.chunks.know(before.run.subplan.chunks, kept.chunks)
        subplan.restore(
            json.loads(self._files.read(kept.subplan))["run"], kept.subplan, kept.chunks
        )
        subplan.holder = query
        return subplan

    def stands_for(self, subplan: SubPlanRun) -> str | None:
        """A query with which a sub-plan is stored, or about to be, as it is in memory, if any."""
        if subplan.holder is None or subplan.is_waiting:
            return subplan.holder
        held = self._held.get(subplan.holder)
        return subplan.holder if held is not None and self._has(subplan.holder, held) else None

    def _has(self, query: str, held: HeldQuery) -> bool:
        """Whether the files have the sub-plan of a query, as last saved, with this query."""
        kept = self._kept.get(query)
        there = None if kept is None else kept.subplan
        return there is not None and there == held.run.subplan.at

    def _is_current(self, query: str, held: HeldQuery) -> bool:
        """Whether the state in memory is that in the files."""
        kept = self._kept.get(query)
        is_saved = held.number == (-1 if kept is None or kept.state is None else kept.number)
        return is_saved and held.run.subplan.follows(held.run.rounds)

    def before_write(self, done: Iterable[str]) -> BeforeWrite:
        """What has to be known when a file is written with what was done to these queries."""
        current = {query for query, held in self._held.items() if self._is_current(query, held)}
        storing: dict[str, str] = {}
        for query, held in self._held.items():
            if self._has(query, held):
                storing.setdefault(held.run.subplan.tag, query)
        for subplan in self.subplans():
            if subplan.is_waiting and subplan.holder is not None:
                storing[subplan.tag] = subplan.holder
        return BeforeWrite({*done, *current}, storing)

    def written(self, number: int, listed: Collection[str], before: BeforeWrite) -> None:
        """Note that a file with the state of these queries was written, and applied."""
        for query in before.current.intersection(listed):
            if (held := self._held.get(query)) is not None:
                held.number = number
        for subplan in self.subplans():
            storing = before.storing.get(subplan.tag)
            if storing is not None and storing in listed:
                subplan.save(storing, self._kept[storing])


@dataclass(frozen=True)
class BeforeWrite:
    """What was so before a file was written."""

    current: set[str]
    """The queries whose state in memory is, or will be, that in the files."""
    storing: Mapping[str, str]
    """By the tags of sub-plans, a query with which the files have one, or will have it."""
