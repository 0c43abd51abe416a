"""CREATE STREAM, SENSOR TABLE, TABLE; DROP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from nilometer.model.secrets import note_plain, options_with_secrets, plain_secrets
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sensors.catalog.stored_names import NOUNS
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.find_types import check_options, check_reachable
from nilometer.sensors.log_options import read_stream_options
from nilometer.sensors.types.address import ADDRESS
from nilometer.sql.ddl.nodes import CreateSensorTable, CreateStream, CreateTable, Drop, ObjectKind
from nilometer.sql.ddl.parts import ColumnDef, StreamDef


def create_stream(catalog: SensorCatalog, statement: CreateStream) -> Outcome:
    return _create_declared(catalog, statement, ObjectKind.STREAM, _declare(statement))


def create_sensor_table(catalog: SensorCatalog, statement: CreateSensorTable) -> Outcome:
    return _create_declared(catalog, statement, ObjectKind.SENSOR_TABLE, _declare(statement))


def create_table(catalog: SensorCatalog, statement: CreateTable) -> Outcome:
    with placed(statement.place):
        is_new = catalog.create_table(
            statement.name, _schema(statement.columns), if_not_exists=statement.if_not_exists
        )
    return _created(ObjectKind.TABLE, statement.name, is_new)


def drop(catalog: SensorCatalog, statement: Drop) -> Outcome:
    noun = NOUNS[statement.kind]
    with placed(statement.place):
        entry = catalog.find(statement.name)
        if not catalog.drop(statement.kind, statement.name, if_exists=statement.if_exists):
            return Outcome(f"there was no {noun} {statement.name}")
    name = statement.name if entry is None else entry.name
    return Outcome(f"dropped {noun} {name}", change=Change(statement.kind, name, Action.DROPPED))


def _create_declared(
    catalog: SensorCatalog,
    statement: CreateStream | CreateSensorTable,
    kind: ObjectKind,
    declaration: Declaration,
) -> Outcome:
    with placed(statement.place):
        check_type(statement.stream)
        is_new = catalog.create(declaration, if_not_exists=statement.if_not_exists)
    note = note_plain(plain_secrets(declaration.options))
    return _created(kind, statement.name, is_new, note)


def _created(kind: ObjectKind, name: str, is_new: bool, note: str = "") -> Outcome:
    if not is_new:
        return Outcome(f"{NOUNS[kind]} {name} already exists")
    change = Change(kind, name, Action.CREATED)
    return Outcome(f"created {NOUNS[kind]} {name}{note}", change=change)


def check_type(stream: StreamDef | Declaration) -> None:
    """Refuse an unknown type, and options that neither log nor manager nor type understands."""
    type_options = read_stream_options(stream.options, stream.history).of_type or {}
    options = options_with_secrets(type_options)
    address = options.pop(ADDRESS, None)
    check_options(stream.stream_type, options)
    if address is not None:
        check_reachable(stream.stream_type, address)


def _declare(statement: CreateStream | CreateSensorTable) -> Declaration:
    stream = statement.stream
    declared = Declaration(
        name=statement.name,
        readings=_schema(stream.columns),
        stream_type=stream.stream_type.lower(),
        options=dict(stream.options),
        time=stream.time,
        end=stream.end,
        lateness=stream.lateness,
        idle=stream.idle,
        every=stream.every,
        history=stream.history,
    )
    if isinstance(statement, CreateStream):
        return declared
    return replace(
        declared,
        static=_schema(statement.static),
        place=statement.stream_place,
        column=statement.column,
    )


def _schema(columns: Sequence[ColumnDef]) -> pa.Schema:
    return pa.schema([column.field for column in columns])
