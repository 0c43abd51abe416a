"""Deliveries of queries' results: their source, their unit, and whether they should be running."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, insert, update

from nilometer.sensors.catalog.schema import deliveries
from nilometer.sensors.catalog.stored_names import require_text, rows_of_kind


class KeptState(StrEnum):
    """Whether a delivery should be running."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    """It has failed for good, with an error."""


@dataclass(frozen=True)
class StoredDelivery:
    """CREATE DELIVERY name FROM query TO unit WITH (options)."""

    name: str
    query: str
    unit: str
    options: Mapping[str, str] = field(repr=False)
    """The options as written; some are secret."""
    state: KeptState
    created: int
    error: str | None
    """Why it has failed."""


def store_delivery(connection: Connection, owner: int, delivery: StoredDelivery) -> None:
    for text in (delivery.unit, *delivery.options.values()):
        require_text(text, "an option")
    row = {
        "owner": owner,
        "query": delivery.query,
        "unit": delivery.unit,
        "options": json.dumps(dict(delivery.options)),
        "state": delivery.state.value,
        "created": delivery.created,
        "error": delivery.error,
    }
    connection.execute(insert(deliveries).values(row))


def read_delivery(connection: Connection, name: str) -> StoredDelivery | None:
    return next((_delivery(row) for row in rows_of_kind(connection, deliveries, name)), None)


def read_deliveries(connection: Connection) -> list[StoredDelivery]:
    """All deliveries, by name."""
    return [_delivery(row) for row in rows_of_kind(connection, deliveries)]


def set_state(connection: Connection, owner: int, state: KeptState, error: str | None) -> None:
    stored = None if error is None else error.replace("\0", "")
    changed = update(deliveries).where(deliveries.c.owner == owner)
    connection.execute(changed.values(state=state.value, error=stored))


def _delivery(row: Row[Any]) -> StoredDelivery:
    options, state = json.loads(row.options), KeptState(row.state)
    return StoredDelivery(row.name, row.query, row.unit, options, state, row.created, row.error)
