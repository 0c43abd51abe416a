"""Runs the statements that need nothing but the catalog."""

from __future__ import annotations

from typing import TypeAlias

from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sensors.catalog.run_create import (
    create_sensor_table,
    create_stream,
    create_table,
    drop,
)
from nilometer.sensors.catalog.run_rows import delete, insert, update
from nilometer.sensors.catalog.show import describe, show
from nilometer.sql.ddl.nodes import (
    CreateSensorTable,
    CreateStream,
    CreateTable,
    Delete,
    Describe,
    Drop,
    Insert,
    Show,
    Update,
)

CatalogStatement: TypeAlias = (
    CreateStream
    | CreateSensorTable
    | CreateTable
    | Insert
    | Update
    | Delete
    | Drop
    | Show
    | Describe
)


def execute(catalog: SensorCatalog, statement: CatalogStatement) -> Outcome:
    """Run one statement, wholly or not at all; SHOW takes STREAMS, TABLES and STREAM TYPES."""
    match statement:
        case CreateStream():
            return create_stream(catalog, statement)
        case CreateSensorTable():
            return create_sensor_table(catalog, statement)
        case CreateTable():
            return create_table(catalog, statement)
        case Insert():
            return insert(catalog, statement)
        case Update():
            return update(catalog, statement)
        case Delete():
            return delete(catalog, statement)
        case Drop():
            return drop(catalog, statement)
        case Show():
            return show(catalog, statement)
        case Describe():
            return describe(catalog, statement)
