"""The state of alerts."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.alerts.definition import AlertDefinition
from nilometer.alerts.rule import AlertState

_ORDER = (AlertState.FIRING, AlertState.NO_DATA, AlertState.PENDING, AlertState.OK)


@dataclass(frozen=True)
class GroupStatus:
    """One group of an alert; instants are microseconds since 1970."""

    key: str | None
    """The columns of PER and their values, as JSON."""
    state: AlertState
    since: int
    value: str | None
    """What the last row said, as JSON."""


@dataclass(frozen=True)
class AlertStatus:
    """One alert."""

    definition: AlertDefinition
    created: int
    groups: tuple[GroupStatus, ...]
    """Groups that are not ok come first, then those that changed last."""
    silenced_until: int | None
    delivery: str | None
    """The delivery that was created with it."""
    error: str | None
    """Why it cannot check some rows, or any."""
    failed_rows: int = 0
    """Rows for which the conditions could not be evaluated since it was started here."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def state(self) -> AlertState:
        """The worst state of its groups."""
        return min((one.state for one in self.groups), key=_ORDER.index, default=AlertState.OK)

    @property
    def since(self) -> int:
        """When the first of its groups entered this state."""
        state = self.state
        return min((one.since for one in self.groups if one.state is state), default=self.created)

    @property
    def value(self) -> str | None:
        """What the last row of the first of its groups said."""
        return self.groups[0].value if self.groups else None

    def count(self, state: AlertState) -> int:
        """How many groups are in a state."""
        return sum(one.state is state for one in self.groups)


def in_order(groups: list[GroupStatus]) -> tuple[GroupStatus, ...]:
    """Groups in the order in which they are listed."""
    return tuple(sorted(groups, key=lambda one: (_ORDER.index(one.state), -one.since)))
