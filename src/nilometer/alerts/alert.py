"""A running alert: checks new rows and the clock."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Final

from nilometer.alerts.condition import Condition
from nilometer.alerts.definition import AlertDefinition
from nilometer.alerts.groups import answered, observations, shown_key
from nilometer.alerts.kept import AlertLog, AlertMemory, Notification, read_memory
from nilometer.alerts.rule import AlertState, Group, Sign, advance
from nilometer.alerts.source import AlertSource, NewRows
from nilometer.alerts.status import GroupStatus, in_order
from nilometer.log.clock import now_micros
from nilometer.model.events import event
from nilometer.model.names import count
from nilometer.model.time import format_duration
from nilometer.past.guarded import AnySandbox

_LOG: Final = logging.getLogger("nilometer.alerts")
LOOK_SECONDS: Final = 1.0
"""After this long the remaining new rows wait for the next look."""
_KEEP_EVERY: Final = 10_000_000
_TRIM_EVERY: Final = 600_000_000
_CLEARED: Final = Sign(fires=False, clears=True)
_LEVELS: Final = {AlertState.OK: logging.INFO}


class Alert:
    """Looks when it is called; only one thread at a time may call `look` and `close`."""

    def __init__(
        self,
        definition: AlertDefinition,
        location: str,
        source_of: Callable[[str], str],
        sandbox: Callable[[], AnySandbox],
        silenced_until: int | None = None,
        clock: Callable[[], int] = now_micros,
    ) -> None:
        """`location`: where the alert's own log lies; `source_of`: that of its source."""
        self.definition = definition
        self.error: str | None = None
        self.failed_rows = 0
        self._location = location
        self._source_of = source_of
        self._sandbox = sandbox
        self._clock = clock
        self._log: AlertLog | None = None
        self._source: AlertSource | None = None
        self._condition: Condition | None = None
        self._memory = read_memory(location)
        self._started = clock()
        self._silenced_until = silenced_until or 0
        self._due: int | None = 0
        self._kept = self._trimmed = self._started
        self._is_changed = False
        """Whether there are changes that are not stored yet."""
        self._is_urgent = False
        """Whether those changes must not be lost."""
        self._unstored: list[Notification] = []
        """History lines still to be stored: a disk may have been full."""
        self._said_last: str | None = None

    @property
    def groups(self) -> tuple[GroupStatus, ...]:
        """The state of its groups."""
        groups = self._memory.groups.items()
        return in_order([GroupStatus(k or None, g.state, g.since, g.value) for k, g in groups])

    def silence(self, until: int | None) -> None:
        """Deliver nothing until then; what still holds will be reported then."""
        self._silenced_until = until or 0
        self._due = 0

    def look(self) -> None:
        """Check what has arrived, and the clock."""
        now = self._clock()
        if self._log is None:
            self._begin(now)
        source = self._open()
        if source.moved():
            self.error = None
            until, lost = monotonic() + LOOK_SECONDS, source.lost
            for new in source.new_rows():
                self._unstored += self._observed(new, now)
                self._settle(now)
                if monotonic() >= until:
                    break  # let other alerts run, too
            if source.lost > lost:
                self.fail(
                    f"{count(source.lost - lost, 'row')} were deleted before it could read them"
                )
        if self._due is not None and now >= self._due:
            self._unstored += self._passed(now)
            self._settle(now)
        if self._unstored or (self._is_changed and now - self._kept >= _KEEP_EVERY):
            self._keep()
        source.commit()
        if now - self._trimmed >= _TRIM_EVERY and self._log is not None:
            self._trimmed = now
            self._log.trim()

    def fail(self, reason: str) -> None:
        """Report what is wrong with it, once for the same reason."""
        self.error, name = reason, self.definition.name
        if reason != self._said_last:
            self._said_last = reason
            extra = event("alert_fails", name, alert=name, reason=reason)
            _LOG.warning("alert %s: %s", name, reason, extra=extra)

    def close(self) -> None:
        """Suspend the alert, storing everything that it needs to resume."""
        if self._source is not None:
            if self._is_changed or self._unstored:
                self._keep()
            self._source.commit(at_once=True)
            self._source.close()
        if self._log is not None:
            self._log.close()
        self._log, self._source = None, None

    def _begin(self, now: int) -> None:
        self._log = AlertLog(self._location, self.definition.limits.history, self._clock)
        groups = dict(self._log.memory.groups)
        if not self.definition.per:
            groups.setdefault("", Group.new(now))
        # While the alert was not running, no silence was observed.
        groups = {key: replace(one, seen=max(one.seen, now)) for key, one in groups.items()}
        self._memory = replace(self._log.memory, groups=groups)
        self._due = 0

    def _open(self) -> AlertSource:
        """The source, reopened if another log has replaced its log."""
        location = self._source_of(self.definition.source)
        if self._source is not None and self._source.location != location:
            self._source = None
        if self._source is None:
            place = self._memory.place
            source = AlertSource(
                location, self.definition.name, None if place is None else dict(place), self._clock
            )
            self._condition = Condition(self._sandbox(), self.definition, source.schema)
            self._source = source
            if place is None:
                self._keep()
        return self._source

    def _observed(self, new: NewRows, now: int) -> list[Notification]:
        """What to report about new rows."""
        condition = self._condition
        assert condition is not None
        signs = condition.evaluate(new.rows)
        if signs.failed:
            self.failed_rows += signs.failed
            self.fail(f"the condition failed for {count(signs.failed, 'row')}: {signs.error}")
        groups, notifications = dict(self._memory.groups), list[Notification]()
        if not new.is_answer:
            for one in observations(new.rows, condition, signs):
                notifications += self._step(groups, one.key, one.sign, one.value, now)
        else:
            there, observed = answered(new.rows, condition, signs)
            for one in observed:
                notifications += self._step(groups, one.key, one.sign, one.value, now)
            if self.definition.rule.no_data is None:
                for key in [one for one in groups if one not in there]:
                    notifications += self._step(groups, key, _CLEARED, None, now)
        self._memory = replace(self._memory, groups=groups)
        self._is_changed = True
        return notifications

    def _passed(self, now: int) -> list[Notification]:
        """What to report because time has passed."""
        groups, notifications = dict(self._memory.groups), list[Notification]()
        for key in groups:
            notifications += self._step(groups, key, None, None, now)
        self._memory = replace(self._memory, groups=groups)
        return notifications

    def _step(
        self, groups: dict[str, Group], key: str, sign: Sign | None, value: str | None, now: int
    ) -> list[Notification]:
        group = groups.get(key)
        if group is None:
            if not self._has_room(groups):
                return []
            group = Group.new(now)
        if value is not None:
            group = replace(group, value=value)
        notifications = []
        for after in advance(group, self.definition.rule, sign, now):
            self._is_urgent |= after.state is not group.state
            group = after
            if group.state not in (AlertState.PENDING, group.recorded):
                notifications.append(self._line(key, group, group.recorded, now))
                group = self._with_recorded(group, now)
        if group.state is group.recorded is not group.told and not self._is_silenced(now):
            # The alert is no longer silenced.
            notifications.append(self._line(key, group, group.told, now))
            group = self._with_recorded(group, now)
        groups[key] = group
        return notifications

    def _with_recorded(self, group: Group, now: int) -> Group:
        told = group.told if self._is_silenced(now) else group.state
        return replace(group, recorded=group.state, told=told)

    def _is_silenced(self, now: int) -> bool:
        return now < self._silenced_until

    def _line(self, key: str, group: Group, previous: AlertState, now: int) -> Notification:
        name, is_silenced = self.definition.name, self._is_silenced(now)
        whose = f"{name} ({shown_key(key)})" if key else name
        message = f"{whose} {self._state_sentence(group.state)}"
        extra = event(
            f"alert_{group.state.replace(' ', '_')}",
            name,
            alert=name,
            key=key or None,
            value=group.value,
            silenced=is_silenced,
        )
        _LOG.log(_LEVELS.get(group.state, logging.WARNING), "alert %s", message, extra=extra)
        return Notification(
            now, group.state, previous, key or None, group.value, message, is_silenced
        )

    def _state_sentence(self, state: AlertState) -> str:
        if state is AlertState.FIRING:
            return f"is firing: {self.definition.sentence}"
        if state is AlertState.OK:
            return "is ok again"
        return f"has no data for {format_duration(self.definition.rule.no_data or 0)}"

    def _has_room(self, groups: dict[str, Group]) -> bool:
        """Whether one more group can be kept; groups that are and were ok may be forgotten."""
        limit = self.definition.limits.groups
        if len(groups) < limit:
            return True
        fine = [(g.seen, k) for k, g in groups.items() if g.state is g.told is AlertState.OK]
        for _, key in sorted(fine)[: max(1, limit // 10)]:
            del groups[key]
        self.fail(
            f"there are more than {limit} groups: those are forgotten that are ok and have been "
            "quiet for the longest time"
        )
        return bool(fine)

    def _settle(self, now: int) -> None:
        """Store what has changed, and find out when time alone will next change something."""
        groups, rule = self._memory.groups.values(), self.definition.rule
        due = [at for one in groups if (at := one.due(rule)) is not None]
        if self._is_silenced(now) and any(one.recorded is not one.told for one in groups):
            due.append(self._silenced_until)
        self._due = min(due, default=None)
        if self._unstored or self._is_urgent:
            self._keep()

    def _keep(self) -> None:
        assert self._log is not None
        place = self._memory.place if self._source is None else self._source.place
        memory = AlertMemory(self._memory.groups, place, self._memory.number)
        self._memory = self._log.keep(memory, self._unstored)
        self._unstored = []
        self._kept, self._is_changed, self._is_urgent = self._clock(), False, False
