"""The alerts of a database: their entries in the catalog, and the thread that evaluates them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from nilometer.alerts.alert import Alert
from nilometer.alerts.condition import Condition, read_condition
from nilometer.alerts.definition import AlertDefinition, AlertLimits
from nilometer.alerts.kept import Notification, read_history
from nilometer.alerts.rule import Rule
from nilometer.alerts.source import reader_name, shown_schema
from nilometer.alerts.status import AlertStatus
from nilometer.database.show_alerts import describe_alert, show_alerts
from nilometer.errors import InputError, LimitError, LogError, NilometerError, SqlError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.log.delete import delete_log
from nilometer.log.reader import LogReader
from nilometer.log.registrations import forget
from nilometer.model.names import nearest
from nilometer.model.options import Option, OptionError, read_options, whole
from nilometer.model.time import FOREVER, format_instant, parse_duration
from nilometer.past.guarded import GuardedSandbox
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sensors.catalog.stored_alerts import StoredAlert
from nilometer.sql.ddl.nodes import AlterAlert, CreateAlert, ObjectKind
from nilometer.sql.ddl.parts import GivenOption

SOURCES: Final = (ObjectKind.STREAM, ObjectKind.SENSOR_TABLE, ObjectKind.QUERY)
MOST_ALERTS: Final = 1000
MEMORY: Final = 256 << 20
"""The most bytes that the conditions of all alerts may use together."""
_EVERY: Final = 0.25
_PATIENCE: Final = 4
"""An alert that takes a second is skipped for this many seconds while the others go on."""
_AFTER_FAILURE: Final = 2.0
_LIMITS: Final = (
    Option("history", "how long its history is kept", parse_duration, AlertLimits.history),
    Option("groups", "how many groups it keeps track of", whole(1, 100_000), AlertLimits.groups),
)
_SILENCE: Final = Option("silence", "how long deliveries are silenced, or 'off'", str)


class Alerts:
    """Creates, alters, drops and evaluates alerts; safe to call from any thread."""

    def __init__(
        self,
        catalog: SensorCatalog,
        log_of: Callable[[str], str],
        clock: Callable[[], int] = now_micros,
    ) -> None:
        self._catalog = catalog
        self._log_of = log_of
        self._clock = clock
        self._running: dict[str, Alert] = {}
        self._rest: dict[str, float] = {}
        """Until when, by the monotonic clock, alerts are skipped."""
        self._changing = threading.RLock()
        self._sandbox: GuardedSandbox | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def create(self, statement: CreateAlert) -> Outcome:
        """Store an alert and start evaluating it."""
        name = statement.name
        with self._changing:
            with placed(statement.source_place):
                source = self._catalog.require(statement.source, *SOURCES).name
            definition = self._read(statement, source)
            if len(self._catalog.alerts()) >= MOST_ALERTS:
                raise LimitError(
                    f"there are {MOST_ALERTS} alerts already",
                    hint="let one alert watch many groups: PER (columns)",
                )
            with placed(statement.place):
                is_new = self._catalog.create_alert(
                    name, source, _to_json(definition), if_not_exists=statement.if_not_exists
                )
            if not is_new:
                return Outcome(f"alert {name} already exists")
            delete_log(self._log_of(name))  # DROP may have ended between its steps
            self._start(self._require(name))
            self._look_at(name)
        change = Change(ObjectKind.ALERT, name, Action.CREATED)
        return Outcome(f"alert {name} created", change=change)

    def note_delivery(self, name: str, delivery: str) -> None:
        """Record that a delivery belongs to an alert from now on."""
        with self._changing:
            self._catalog.change_alert(replace(self._require(name), delivery=delivery))

    def alter(self, statement: AlterAlert) -> Outcome:
        """ALTER ALERT: silence it for a time, or change its limits."""
        with self._changing, placed(statement.place):
            alert = self._require(statement.name)
            changes = {name: one.value for name, one in statement.options.items()}
            options = _read_options(statement.options, (*_LIMITS, _SILENCE))
            definition = dict(alert.definition)
            definition |= {one.name: options[one.name] for one in _LIMITS if one.name in changes}
            until = alert.silenced_until
            if "silence" in changes:
                until = self._until(statement.options["silence"])
            self._catalog.change_alert(replace(alert, definition=definition, silenced_until=until))
            if (running := self._running.get(alert.name)) is not None:
                running.silence(until)
                running.definition = _definition(self._require(alert.name))
        if "silence" not in changes:
            return Outcome(f"alert {alert.name} altered")
        outcome = (
            "is not silenced" if until is None else f"is silenced until {format_instant(until)}"
        )
        return Outcome(f"alert {alert.name} {outcome}")

    def rename(self, name: str, to: str) -> None:
        """Rename an alert; it resumes where it was and keeps its history."""
        with self._changing:
            alert = self._require(name)
            was_running = self._halt(alert.name)
            try:
                self._catalog.rename(ObjectKind.ALERT, alert.name, to)
            except BaseException:
                if was_running:
                    self._start(alert)
                raise
            if was_running:
                self._start(self._require(to))
                self._look_at(to)  # from now on, rows are kept for it under its new name
            if alert.name != to:
                with suppress(NilometerError):
                    forget(self._log_of(alert.source), reader_name(alert.name))

    def drop(self, name: str) -> None:
        """Drop an alert and its history."""
        with self._changing:
            alert = self._require(name)
            location = self._log_of(alert.name)
            self._halt(alert.name)
            with suppress(NilometerError):
                forget(self._log_of(alert.source), reader_name(alert.name))
            self._catalog.drop(ObjectKind.ALERT, alert.name)
            delete_log(location)

    def on(self, source: str) -> list[str]:
        """The alerts on a stream or query."""
        return [one.name for one in self._catalog.alerts() if one.source.lower() == source.lower()]

    def needing(self, source: str, column: str) -> list[str]:
        """The alerts whose conditions or groups name a column of a stream."""
        needing = []
        for one in map(_definition, self._catalog.alerts()):
            if one.source.lower() == source.lower() and column.lower() in _named(one):
                needing.append(one.name)
        return needing

    def source_changed(self, source: str) -> None:
        """Resume the alerts on a stream that was altered or a query that was renamed."""
        with self._changing:
            for name in self.on(source):
                if self._halt(name):
                    self._start(self._require(name))

    def resume(self) -> list[str]:
        """Start evaluating all alerts again; returns their names."""
        with self._changing:
            stopped = [one for one in self._catalog.alerts() if one.name not in self._running]
            for one in stopped:
                self._start(one)
            return [one.name for one in stopped]

    def statuses(self) -> list[AlertStatus]:
        """The status of every alert, ordered by name."""
        return [self._status(one) for one in self._catalog.alerts()]

    def status(self, name: str) -> AlertStatus:
        """The status of one alert."""
        return self._status(self._require(name))

    def history(self, name: str, limit: int) -> list[Notification]:
        """The most recent notifications of an alert, newest first."""
        return read_history(self._log_of(self._require(name).name), limit)

    def show(self) -> Outcome:
        """SHOW ALERTS."""
        return show_alerts(self.statuses())

    def describe(self, name: str) -> Outcome:
        """DESCRIBE: the definition, and the status of each group."""
        return describe_alert(self.status(name))

    def close(self) -> None:
        """Stop evaluating; `resume` starts again."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with self._changing:
            for name in list(self._running):
                self._halt(name)
            if self._sandbox is not None:
                self._sandbox.close()

    def _read(self, statement: CreateAlert, source: str) -> AlertDefinition:
        """The alert, checked against the columns of its source."""
        options = _read_options(statement.options, _LIMITS)
        definition = AlertDefinition(
            statement.name,
            source,
            statement.condition,
            statement.clear,
            tuple(name for name, _ in statement.per),
            Rule(statement.hold, statement.no_data),
            AlertLimits(options["history"], options["groups"]),
        )
        with placed(statement.source_place):
            schema = self._schema(source)
        for name, place in statement.per:
            with placed(place):
                _require_column(source, schema, name)
        if statement.condition_place is not None:
            with placed(statement.condition_place):
                Condition(self._shared_sandbox(), replace(definition, clear=None), schema)
        if statement.clear is not None and statement.clear_place is not None:
            with placed(statement.clear_place):
                Condition(
                    self._shared_sandbox(), replace(definition, condition=statement.clear), schema
                )
        return definition

    def _schema(self, source: str) -> pa.Schema:
        try:
            return shown_schema(LogReader.open(self._log_of(source)))
        except LogError:
            raise InputError(
                f"{source} has no rows yet, so its columns are not known",
                hint=f"if it is a query, start it: START QUERY {source}",
            ) from None

    def _shared_sandbox(self) -> GuardedSandbox:
        with self._changing:
            if self._sandbox is None:
                self._sandbox = GuardedSandbox(MEMORY)
            return self._sandbox

    def _start(self, alert: StoredAlert) -> None:
        self._running[alert.name] = Alert(
            _definition(alert),
            self._log_of(alert.name),
            self._log_of,
            self._shared_sandbox,
            alert.silenced_until,
            self._clock,
        )
        if self._thread is None and not self._ended.is_set():
            self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
            self._thread.start()

    def _halt(self, name: str) -> bool:
        running = self._running.pop(name, None)
        if running is not None:
            with suppress(NilometerError, OSError):  # its source may have been dropped
                running.close()
        return running is not None

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            for name in list(self._running):
                if self._ended.is_set():
                    return
                if time.monotonic() >= self._rest.get(name, 0.0):
                    with self._changing:
                        self._look_at(name)

    def _look_at(self, name: str) -> None:
        """Evaluate one alert; its failure does not affect the others."""
        running = self._running.get(name)
        if running is None:
            return
        began = time.monotonic()
        try:
            running.look()
            wait = 0.0
        except Exception as error:
            running.fail(in_one_line(error))
            wait = _AFTER_FAILURE
        took = time.monotonic() - began
        self._rest[name] = time.monotonic() + max(wait, _PATIENCE * took)

    def _status(self, alert: StoredAlert) -> AlertStatus:
        running = self._running.get(alert.name)
        definition = _definition(alert)
        known = running or Alert(
            definition, self._log_of(alert.name), self._log_of, self._shared_sandbox
        )
        until = alert.silenced_until
        is_silenced = until is not None and until > self._clock()
        return AlertStatus(
            definition,
            alert.created,
            known.groups,
            until if is_silenced else None,
            alert.delivery,
            known.error,
            known.failed_rows,
        )

    def _until(self, option: GivenOption) -> int | None:
        """Until when SET (silence = …) silences an alert."""
        if option.value.strip().lower() in ("off", "none", "0"):
            return None
        try:
            length = parse_duration(option.value)
        except NilometerError as error:
            hint = "write silence = '1 hour', or silence = 'off'"
            raise option.refusal("cannot read the time", detail=error.message, hint=hint) from None
        return None if not length else min(self._clock() + length, FOREVER - 1)

    def _require(self, name: str) -> StoredAlert:
        alert = self._catalog.alert(name)
        if alert is None:
            self._catalog.require(name, ObjectKind.ALERT)
            known = [one.name for one in self._catalog.alerts()]
            raise InputError(f"there is no alert {name}", hint=nearest(name, known))
        return alert


def _read_options(options: Mapping[str, GivenOption], known: tuple[Option, ...]) -> dict[str, Any]:
    try:
        return read_options("an alert", known, {name: one.value for name, one in options.items()})
    except OptionError as error:
        place = options[(error.option or "").lower()].place
        raise SqlError.at(place, error) from None


def _require_column(source: str, schema: pa.Schema, name: str) -> None:
    if name.lower() not in {one.lower() for one in schema.names}:
        raise InputError(
            f"{source} has no column {name}",
            detail=f"it has {', '.join(schema.names)}",
            hint=nearest(name, schema.names),
        )


def _named(one: AlertDefinition) -> set[str]:
    """The columns that an alert may name, in lower case."""
    texts = [text for text in (one.condition, one.clear) if text is not None]
    words = {word.name.lower() for text in texts for word in read_condition(text).walk()}
    return words | {name.lower() for name in one.per}


def _to_json(one: AlertDefinition) -> dict[str, Any]:
    return {
        "condition": one.condition,
        "clear": one.clear,
        "per": list(one.per),
        "hold": one.rule.hold,
        "no_data": one.rule.no_data,
        "history": one.limits.history,
        "groups": one.limits.groups,
    }


def _definition(alert: StoredAlert) -> AlertDefinition:
    stored = alert.definition
    return AlertDefinition(
        alert.name,
        alert.source,
        stored["condition"],
        stored["clear"],
        tuple(stored["per"]),
        Rule(stored["hold"], stored["no_data"]),
        AlertLimits(stored["history"], stored["groups"]),
    )
