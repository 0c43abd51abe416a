"""The deliveries of a database: their entries in the catalog, and those that run here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from nilometer.alerts.kept import SILENCED
from nilometer.database.units import Units
from nilometer.deliveries.delivery import Delivery, DeliverySettings
from nilometer.deliveries.find_units import (
    chunk_size,
    read_unit_options,
    shown_options,
    unit_class,
)
from nilometer.deliveries.reading import begin, end, read_progress, rows_behind
from nilometer.deliveries.status import DeliveryState, DeliveryStatus
from nilometer.deliveries.unit import DeliveryUnit, UnitSetting
from nilometer.deliveries.unsilenced import Unsilenced
from nilometer.errors import InputError, SqlError
from nilometer.log.clock import now_micros
from nilometer.log.layout import TIMESTAMP
from nilometer.model.names import count, nearest
from nilometer.model.options import OptionError
from nilometer.model.secrets import note_plain, plain_secrets
from nilometer.model.time import format_instant
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sensors.catalog.stored_deliveries import KeptState, StoredDelivery
from nilometer.sql.ddl.nodes import CreateDelivery, ObjectKind
from nilometer.sql.ddl.parts import GivenOption

_SHOWN: Final = pa.schema(
    {
        "name": pa.string(),
        "query": pa.string(),
        "unit": pa.string(),
        "state": pa.string(),
        "delivered": pa.int64(),
        "lag": pa.int64(),
        "lost": pa.int64(),
        "next_try": TIMESTAMP,
        "last_error": pa.string(),
    }
)
_SETTINGS: Final = DeliverySettings()


class Deliveries:
    """Creates, starts, stops and drops deliveries; safe to call from any thread."""

    def __init__(
        self,
        catalog: SensorCatalog,
        log_of: Callable[[str], str],
        units: Units,
        folders: Sequence[Path],
        settings: DeliverySettings = _SETTINGS,
    ) -> None:
        """`folders`: the folders below which deliveries may write files."""
        self._catalog = catalog
        self._log_of = log_of
        self._units = units
        self._folders = folders
        self._settings = settings
        self._running: dict[str, Delivery] = {}
        self._changing = threading.RLock()
        units.when_registered(self._hurry)

    def create(self, statement: CreateDelivery) -> Outcome:
        """Store a delivery and start it."""
        name = statement.name
        texts = {option: one.value for option, one in statement.options.items()}
        with self._changing:
            with placed(statement.query_place):
                query = self._catalog.require(
                    statement.query, ObjectKind.QUERY, ObjectKind.ALERT
                ).name
            options = self._read(statement, query, texts)
            with placed(statement.place):
                is_new = self._catalog.create_delivery(
                    name, query, statement.unit, texts, if_not_exists=statement.if_not_exists
                )
            if not is_new:
                return Outcome(f"delivery {name} already exists")
            from_start = options["start"] == "start"
            begin(self._log_of(query), name, from_start=from_start, now=now_micros())
            self._start(self._require(name))
        change = Change(ObjectKind.DELIVERY, name, Action.CREATED)
        noted = note_plain(plain_secrets(texts))
        return Outcome(f"delivery {name} created and started{noted}", change=change)

    def start(self, name: str) -> bool:
        """Start a delivery that is stopped or has failed; False if it is already running."""
        with self._changing:
            delivery = self._require(name)
            running = self._running.get(delivery.name)
            if running is not None and running.state is not DeliveryState.FAILED:
                running.hurry()
                return False
            self._catalog.set_delivery_state(delivery.name, KeptState.RUNNING)
            self._start(delivery)
            return True

    def stop(self, name: str) -> bool:
        """Stop a delivery; the log keeps what is not delivered. False if it was not running."""
        with self._changing:
            delivery = self._require(name)
            was_running = self._halt(delivery.name)
            self._catalog.set_delivery_state(delivery.name, KeptState.STOPPED)
            return was_running

    def drop(self, name: str) -> None:
        """Drop a delivery, and what it had yet to deliver."""
        with self._changing:
            delivery = self._require(name)
            self._halt(delivery.name)
            end(self._log_of(delivery.query), delivery.name)
            self._catalog.drop(ObjectKind.DELIVERY, delivery.name)

    def query_renamed(self, query: str) -> None:
        """Resume the deliveries of a query that was renamed."""
        with self._changing:
            for name in self.of_query(query):
                if self._halt(name):
                    self._start(self._require(name))

    def of_query(self, query: str) -> list[str]:
        """The deliveries, running or not, of a query's results."""
        deliveries = self._catalog.deliveries()
        return [one.name for one in deliveries if one.query.lower() == query.lower()]

    def resume(self) -> list[str]:
        """Restart the deliveries that were running when the database was closed; their names."""
        with self._changing:
            to_run = [one for one in self._catalog.deliveries() if one.state is KeptState.RUNNING]
            started = [one for one in to_run if one.name not in self._running]
            for one in started:
                self._start(one)
            return [one.name for one in started]

    def statuses(self) -> list[DeliveryStatus]:
        """The status of every delivery, ordered by name."""
        return [self._status(one) for one in self._catalog.deliveries()]

    def show(self) -> Outcome:
        """SHOW DELIVERIES."""
        statuses = self.statuses()
        names = _SHOWN.names
        columns = {name: [getattr(one, name) for one in statuses] for name in names}
        arrays = [pa.array(columns[field.name], field.type) for field in _SHOWN]
        message = f"{len(statuses)} {'delivery' if len(statuses) == 1 else 'deliveries'}"
        return Outcome(message, pa.Table.from_arrays(arrays, schema=_SHOWN))

    def describe(self, name: str) -> Outcome:
        """DESCRIBE: the definition, without secrets, and the status."""
        delivery = self._require(name)
        status = self._status(delivery)
        options = shown_options(delivery.unit, delivery.options)
        properties = {
            "query": delivery.query,
            "unit": delivery.unit,
            **options,
            "state": str(status.state),
            "created": format_instant(delivery.created),
            "delivered": count(status.delivered, "row"),
            "lag": count(status.lag, "row"),
            "error": status.last_error,
        }
        rows = {"property": list(properties), "value": list(properties.values())}
        table = pa.table({one: pa.array(values, pa.string()) for one, values in rows.items()})
        return Outcome(f"delivery {delivery.name}", table)

    def close(self) -> None:
        """Stop all deliveries; they still count as running, and `resume` starts them again."""
        with self._changing:
            for running in self._running.values():
                running.ask_to_stop()
            for name in list(self._running):
                self._halt(name)

    def _read(
        self, statement: CreateDelivery, query: str, texts: Mapping[str, str]
    ) -> dict[str, Any]:
        """The options, checked by the unit."""
        with placed(statement.unit_place):
            kind = unit_class(statement.unit)
        with _option_placed(statement):
            options = read_unit_options(statement.unit, texts)
            if hasattr(kind, "check"):
                kind.check(self._setting(statement.name, query, options))
        return options

    def _start(self, delivery: StoredDelivery) -> None:
        name = delivery.name
        size = chunk_size(read_unit_options(delivery.unit, delivery.options))

        def failed(error: str) -> None:
            self._catalog.set_delivery_state(name, KeptState.FAILED, error=error)

        running = Delivery(
            name,
            delivery.query,
            self._log_of(delivery.query),
            size,
            lambda: self._make_unit(delivery),
            failed,
            settings=self._settings,
        )
        self._running[name] = running
        running.start()

    def _make_unit(self, delivery: StoredDelivery) -> DeliveryUnit:
        options = read_unit_options(delivery.unit, delivery.options)
        unit: DeliveryUnit = unit_class(delivery.unit)(
            self._setting(delivery.name, delivery.query, options)
        )
        return unit if self._catalog.alert(delivery.query) is None else Unsilenced(unit, SILENCED)

    def _setting(self, name: str, query: str, options: Mapping[str, Any]) -> UnitSetting:
        return UnitSetting(name, query, options, self._folders, self._units.find)

    def _halt(self, name: str) -> bool:
        running = self._running.pop(name, None)
        if running is None:
            return False
        running.stop()
        return running.state is not DeliveryState.FAILED

    def _hurry(self) -> None:
        for one in list(self._running.values()):
            if one.state is DeliveryState.RETRYING:
                one.hurry()

    def _status(self, delivery: StoredDelivery) -> DeliveryStatus:
        location = self._log_of(delivery.query)
        progress = read_progress(location, delivery.name)
        running = self._running.get(delivery.name)
        state = (
            DeliveryState.FAILED if delivery.state is KeptState.FAILED else DeliveryState.STOPPED
        )
        return DeliveryStatus(
            name=delivery.name,
            query=delivery.query,
            unit=delivery.unit,
            state=state if running is None else running.state,
            delivered=0 if progress is None else progress.delivered,
            position=0 if progress is None else progress.position.row,
            lag=0 if progress is None else rows_behind(location, progress),
            lost=0 if progress is None else progress.lost,
            last_error=delivery.error if running is None else running.last_error,
            next_try=None if running is None else running.next_try,
            retries=0 if running is None else running.retries,
            last_success=None if progress is None else progress.last,
        )

    def _require(self, name: str) -> StoredDelivery:
        delivery = self._catalog.delivery(name)
        if delivery is None:
            known = [one.name for one in self._catalog.deliveries()]
            hint = nearest(name, known) or "SHOW DELIVERIES lists them"
            raise InputError(f"there is no delivery {name}", hint=hint)
        return delivery


@contextmanager
def _option_placed(statement: CreateDelivery) -> Iterator[None]:
    """Add to an option's error the place where the option stands, or should stand."""
    try:
        yield
    except OptionError as error:
        option: GivenOption | None = statement.options.get((error.option or "").lower())
        place = statement.unit_place if option is None else option.place
        raise SqlError.at(place, error) from None
