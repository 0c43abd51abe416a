"""The queries of a bucket in the memory of a process, and the bases that they share.

Every query has all of its state in the bucket's files, by itself or by way of another one that has
the same base. So one that leaves the others, whatever the reason, goes on from there.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nilometer.engine.base_plan import Above, BasePlan, base_of
from nilometer.engine.base_run import BaseRun
from nilometer.engine.bucket_files import BucketFolder, KeptQuery
from nilometer.engine.place import EnginePlace, Watched
from nilometer.engine.plan_set import PlanEntry, PlanSet
from nilometer.engine.query_run import HostedRun
from nilometer.engine.sharing import Sharing

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
    base: BasePlan
    above: tuple[Above, ...]


class HeldQueries:
    """The queries of one bucket."""

    def __init__(
        self,
        place: EnginePlace,
        files: BucketFolder,
        at_work: Watched,
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

    def bases(self) -> list[BaseRun]:
        """All bases, each once."""
        return list({held.run.base.tag: held.run.base for held in self._held.values()}.values())

    def resume_all(self, waiting: Sequence[PlanEntry]) -> None:
        """Restore queries from the files, and find those that can share a base."""
        there = {held.run.base.tag for query, held in self._held.items() if self._has(query, held)}
        for query, held in list(self._held.items()):
            if held.run.base.tag not in there:  # whoever had it in the files is gone
                del self._held[query]
        for one in waiting:
            kept = self._kept.get(one.query)
            if kept is None or kept.failed != one.attempt:
                with suppress(Exception):  # it is told when it is the query's turn
                    self.resume(one, alone=False)
        self._sharing.find(held.run for held in self._held.values())
        for base in self.bases():
            base.sharing = 0
        for held in self._held.values():
            held.run.base.sharing += 1

    def resume(self, one: PlanEntry, *, alone: bool = True) -> HeldQuery:
        """Restore a query from the files, with a base of its own or one that has its state."""
        before = self._held.get(one.query)
        if before is not None and self._is_current(one.query, before):
            return before
        assert one.plan is not None
        self._at_work.begin(one.query)
        kept, loaded = self._kept.get(one.query), self._load(one.plan)
        kept = None if kept is None or kept.state is None else kept
        base = None if alone else self._base_like(loaded.base, kept)
        if kept is None:
            base = base or self._begin(loaded.base)
            held = HeldQuery(HostedRun(loaded.hosted, loaded.above, base), one, -1, 0)
        else:
            assert kept.about is not None
            assert kept.state is not None
            state = json.loads(self._files.read(kept.state))
            base = base or self._restore(loaded.base, one.query, kept, before)
            run = HostedRun(loaded.hosted, loaded.above, base)
            run.check(json.loads(self._files.read(kept.about)))
            run.counted = state.get("counted", run.counted)  # which earlier ones lack
            held = HeldQuery(run, one, kept.number, state["results"], state["watermark"])
        self._held[one.query] = held
        return held

    def _load(self, plan: str) -> _Loaded:
        if plan not in self._loaded:
            hosted = pickle.loads(self._place.plan(plan))
            self._loaded[plan] = _Loaded(hosted, *base_of(hosted))
        return self._loaded[plan]

    def _base_like(self, plan: BasePlan, kept: KeptQuery | None) -> BaseRun | None:
        """A base that does the same, and is in the state that a query has in the files."""
        starts = [one.start for one in plan.feeds]
        for base in self.bases() if plan.key is not None else ():
            is_there = (
                base.is_new and base.positions == starts if kept is None else base.at == kept.base
            )
            if is_there and base.plan.key == plan.key:
                return base
        return None

    def _begin(self, plan: BasePlan) -> BaseRun:
        base = BaseRun(plan, self._files.read)
        base.begin()
        return base

    def _restore(
        self, plan: BasePlan, query: str, kept: KeptQuery, before: HeldQuery | None
    ) -> BaseRun:
        assert kept.base is not None
        base = BaseRun(plan, self._files.read)
        if before is not None:
            base.chunks.know(before.run.base.chunks, kept.chunks)
        base.restore(json.loads(self._files.read(kept.base))["run"], kept.base, kept.chunks)
        base.holder = query
        return base

    def stands_for(self, base: BaseRun) -> str | None:
        """A query with which a base is stored, or about to be, as it is in memory, if any."""
        if base.holder is None or base.is_waiting:
            return base.holder
        held = self._held.get(base.holder)
        return base.holder if held is not None and self._has(base.holder, held) else None

    def _has(self, query: str, held: HeldQuery) -> bool:
        """Whether the files have the base of a query, as last saved, with this query."""
        kept = self._kept.get(query)
        there = None if kept is None else kept.base
        return there is not None and there == held.run.base.at

    def _is_current(self, query: str, held: HeldQuery) -> bool:
        """Whether the state in memory is that in the files."""
        kept = self._kept.get(query)
        is_saved = held.number == (-1 if kept is None or kept.state is None else kept.number)
        return is_saved and held.run.base.follows(held.run.rounds)

    def before_write(self, done: Iterable[str]) -> BeforeWrite:
        """What has to be known when a file is written with what was done to these queries."""
        current = {query for query, held in self._held.items() if self._is_current(query, held)}
        storing: dict[str, str] = {}
        for query, held in self._held.items():
            if self._has(query, held):
                storing.setdefault(held.run.base.tag, query)
        for base in self.bases():
            if base.is_waiting and base.holder is not None:
                storing[base.tag] = base.holder
        return BeforeWrite({*done, *current}, storing)

    def written(self, number: int, listed: Collection[str], before: BeforeWrite) -> None:
        """Note that a file with the state of these queries was written, and applied."""
        for query in before.current.intersection(listed):
            if (held := self._held.get(query)) is not None:
                held.number = number
        for base in self.bases():
            storing = before.storing.get(base.tag)
            if storing is not None and storing in listed:
                base.save(storing, self._kept[storing])


@dataclass(frozen=True)
class BeforeWrite:
    """What was so before a file was written."""

    current: set[str]
    """The queries whose state in memory is, or will be, that in the files."""
    storing: Mapping[str, str]
    """By the tags of bases, a query with which the files have one, or will have it."""
