"""Finds queries of a bucket whose sub-plans are in the same state, so that they share one.

Queries that begin at different times have different rows in their windows. They are fed each by
itself until what their states say is the same, which is looked at between micro-batches, the less
often the longer it is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from nilometer.engine.query_run import HostedRun
from nilometer.engine.subplan_run import SubPlanRun
from nilometer.errors import LogError, SessionError
from nilometer.operators.content import NoContentError

_LONGEST_PAUSE: Final = 256
"""How many micro-batches may pass until states are compared again."""
_Place: TypeAlias = tuple[str, tuple[object, ...]]
"""What sub-plans do, and the positions at which they are."""


@dataclass
class _Meeting:
    """Bases that do the same, and have not been in the same state yet."""

    tags: frozenset[str]
    pause: int = 1
    wait: int = 0


class Sharing:
    """Makes queries share; used between micro-batches."""

    def __init__(self) -> None:
        self._meetings: dict[str, _Meeting] = {}

    def find(self, runs: Iterable[HostedRun]) -> None:
        """Let queries share sub-plans that are in the same state."""
        runs = list(runs)
        places: dict[_Place, dict[str, SubPlanRun]] = {}
        for run in runs:
            subplan = run.subplan
            if subplan.plan.key is not None and subplan.at is not None:
                places.setdefault((subplan.plan.key, tuple(subplan.positions)), {})[subplan.tag] = (
                    subplan
                )
        several = {place: subplans for place, subplans in places.items() if len(subplans) > 1}
        for (key, _), subplans in several.items():
            if self._is_due(key, frozenset(subplans)):
                same = _same_among(subplans.values())
                for run in runs:
                    if run.subplan.tag in same:
                        run.share(same[run.subplan.tag])
        met = {key for key, _ in several}
        self._meetings = {key: one for key, one in self._meetings.items() if key in met}

    def _is_due(self, key: str, tags: frozenset[str]) -> bool:
        meeting = self._meetings.get(key)
        if meeting is None or meeting.tags != tags:
            meeting = self._meetings[key] = _Meeting(tags)
        meeting.wait -= 1
        if meeting.wait > 0:
            return False
        meeting.wait = meeting.pause
        meeting.pause = min(2 * meeting.pause, _LONGEST_PAUSE)
        return True


def _same_among(subplans: Iterable[SubPlanRun]) -> dict[str, SubPlanRun]:
    """For the tags of sub-plans that are in the state of another one: that other one."""
    firsts: dict[bytes, SubPlanRun] = {}
    same = {}
    for subplan in subplans:
        with suppress(NoContentError, LogError, SessionError):  # none, or it cannot be read now
            content = [run.content() for part in subplan.parts for run in part.runs]
            first = firsts.setdefault(hashlib.sha256(repr(content).encode()).digest(), subplan)
            if first is not subplan:
                same[subplan.tag] = first
    return same
