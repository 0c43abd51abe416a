"""When an alert fires, holds and clears: a state machine for each of its groups.

    ok --the condition--> pending --for so long--> firing --the condition to clear--> ok
    any --no rows for so long--> no data --a row--> what it was before, and on from there

Time is an argument. Rows that meet neither the condition nor the condition to clear change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class AlertState(StrEnum):
    """The state of a group of an alert."""

    OK = "ok"
    PENDING = "pending"
    """The condition holds, but not yet for as long as it must."""
    FIRING = "firing"
    NO_DATA = "no data"


@dataclass(frozen=True)
class Rule:
    """The declared times of an alert, in microseconds."""

    hold: int = 0
    """FOR: how long the condition must hold."""
    no_data: int | None = None
    """NO DATA FOR: how long a silence counts as no data."""


@dataclass(frozen=True)
class Sign:
    """What the rows of a group indicate."""

    fires: bool
    clears: bool
    """Never together with `fires`."""


@dataclass(frozen=True)
class Group:
    """One group of an alert; instants in microseconds."""

    state: AlertState
    since: int
    seen: int
    """When its last rows arrived."""
    value: str | None = None
    """What the last row said, as JSON."""
    was_firing: bool = False
    """Whether it was firing when its data ended."""
    recorded: AlertState = AlertState.OK
    """The last state in its history, which omits pending."""
    told: AlertState = AlertState.OK
    """The state last delivered: while an alert is silenced, none is."""

    @classmethod
    def new(cls, now: int) -> Group:
        return cls(AlertState.OK, now, now)

    def due(self, rule: Rule) -> int | None:
        """When time alone will next change something."""
        instants = []
        if self.state is AlertState.PENDING:
            instants.append(self.since + rule.hold)
        if rule.no_data is not None and self.state is not AlertState.NO_DATA:
            instants.append(self.seen + rule.no_data)
        return min(instants, default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "since": self.since,
            "seen": self.seen,
            "value": self.value,
            "was_firing": self.was_firing,
            "recorded": self.recorded,
            "told": self.told,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Group:
        states = {one: AlertState(content[one]) for one in ("state", "recorded", "told")}
        return cls(**{**content, **states})


def advance(group: Group, rule: Rule, sign: Sign | None, now: int) -> Iterator[Group]:
    """The states of a group, step by step; without a sign, only time has passed."""
    if sign is not None:
        after = _observed(replace(group, seen=now), sign, now)
        if after != group:
            group = after
            yield group
    while (due := group.due(rule)) is not None and due <= now:
        group = _passed(group, rule, now)
        yield group


def _observed(group: Group, sign: Sign, now: int) -> Group:
    state, since = group.state, group.since
    if state is AlertState.NO_DATA:
        state, since = (AlertState.FIRING if group.was_firing else AlertState.OK), now
    if state is AlertState.FIRING:
        after = AlertState.OK if sign.clears else AlertState.FIRING
    else:
        after = AlertState.PENDING if sign.fires else AlertState.OK
    return replace(group, state=after, since=since if after is state else now, was_firing=False)


def _passed(group: Group, rule: Rule, now: int) -> Group:
    """Apply what was due first."""
    if group.state is AlertState.PENDING and group.due(rule) == group.since + rule.hold:
        return replace(group, state=AlertState.FIRING, since=now)
    fired = group.state is AlertState.FIRING
    return replace(group, state=AlertState.NO_DATA, since=now, was_firing=fired)
