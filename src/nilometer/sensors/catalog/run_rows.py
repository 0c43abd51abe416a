"""INSERT, UPDATE and DELETE on tables and sensor tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from sqlglot import exp

from nilometer.errors import UnknownNameError
from nilometer.log.layout import SENSOR
from nilometer.model.names import count, nearest
from nilometer.model.secrets import note_plain, plain_secrets
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.insert_values import InsertedRows, check_address
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sensors.catalog.stored_names import NamedEntry
from nilometer.sensors.catalog.stored_sensors import SensorRow
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.types.address import ADDRESS
from nilometer.sql.bind.table_rows import compute_values, select_rows
from nilometer.sql.ddl.nodes import Delete, Insert, ObjectKind, Update


def insert(catalog: SensorCatalog, statement: Insert) -> Outcome:
    plain: list[str] = []
    with placed(statement.place):
        entry = catalog.require(statement.table, ObjectKind.TABLE, ObjectKind.SENSOR_TABLE)
        if entry.kind is ObjectKind.TABLE:
            inserted = InsertedRows(statement, entry.name, catalog.tables()[entry.name])
            catalog.insert_rows(entry.name, inserted.table())
        else:
            declared = catalog.require_declaration(entry.name)
            inserted = InsertedRows(statement, entry.name, _text_schema(declared))
            sensors = inserted.sensors(declared)
            catalog.insert_sensors(entry.name, sensors)
            plain = _plain(declared, sensors)
    return _changed("inserted", len(statement.rows), "into", entry, plain)


def update(catalog: SensorCatalog, statement: Update) -> Outcome:
    with placed(statement.place):
        entry = catalog.require(statement.table, ObjectKind.TABLE, ObjectKind.SENSOR_TABLE)
        if entry.kind is ObjectKind.TABLE:
            new = _Assignment(statement)
            catalog.change_rows(entry.name, new.replace_rows)
        else:
            new = _Assignment(statement, catalog.require_declaration(entry.name))
            catalog.update_sensors(entry.name, new.replace_sensors)
    return _changed("updated", new.matched, "of", entry, new.plain)


def delete(catalog: SensorCatalog, statement: Delete) -> Outcome:
    with placed(statement.place):
        entry = catalog.require(statement.table, ObjectKind.TABLE, ObjectKind.SENSOR_TABLE)
        doomed = _Deletion(statement)
        if entry.kind is ObjectKind.TABLE:
            catalog.change_rows(entry.name, doomed.keep_rows)
        else:
            catalog.delete_sensors(entry.name, doomed.choose_sensors)
    return _changed("deleted", doomed.matched, "from", entry)


def _changed(
    verb: str, rows: int, preposition: str, entry: NamedEntry, plain: Sequence[str] = ()
) -> Outcome:
    change = Change(entry.kind, entry.name, Action.ROWS_CHANGED) if rows else None
    message = f"{verb} {count(rows, 'row')} {preposition} {entry.name}{note_plain(plain)}"
    return Outcome(message, change=change)


def _plain(declared: Declaration, sensors: Iterable[SensorRow]) -> list[str]:
    """The stream column, if it contains a secret in plain text."""
    return [name for _, one in sensors for name in plain_secrets({declared.column or ADDRESS: one})]


def _text_schema(declared: Declaration) -> pa.Schema:
    """The columns of a sensor table, with the stream column as text."""
    assert declared.static is not None
    fields = list(declared.static)
    fields.insert(declared.place, pa.field(declared.column, pa.string()))
    return pa.schema(fields)


@dataclass
class _Deletion:
    """The rows that a DELETE matches; `matched` is known once the rows have been read."""

    statement: Delete
    matched: int = 0

    def keep_rows(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(~self._mask(rows)))

    def choose_sensors(self, rows: pa.Table) -> Sequence[int]:
        chosen = self._mask(rows.drop_columns([SENSOR]))
        versions: list[int] = rows[SENSOR].filter(pa.array(chosen)).to_pylist()
        return versions

    def _mask(self, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        one = self.statement
        mask = select_rows(one.condition, one.sql, rows, one.table)
        self.matched = int(mask.sum())
        return mask


@dataclass
class _Assignment:
    """What an UPDATE makes of rows; `matched` is known once the rows have been read."""

    statement: Update
    declared: Declaration | None = None
    matched: int = field(default=0, init=False)
    plain: list[str] = field(default_factory=list, init=False)
    """Columns of the new rows that contain secrets in plain text."""

    def replace_rows(self, rows: pa.Table) -> pa.Table:
        chosen, new = self._assign(rows)
        order = np.arange(len(rows))
        order[chosen] = len(rows) + np.arange(len(chosen))
        return pa.concat_tables([rows, new]).take(order)

    def replace_sensors(self, rows: pa.Table) -> Mapping[int, SensorRow]:
        chosen, new = self._assign(rows.drop_columns([SENSOR]))
        versions = rows[SENSOR].take(chosen).to_pylist()
        sensors = [self._sensor(one) for one in new.to_pylist()]
        assert self.declared is not None
        self.plain = _plain(self.declared, sensors)
        return dict(zip(versions, sensors, strict=True))

    def _sensor(self, values: dict[str, object]) -> SensorRow:
        assert self.declared is not None
        assert self.declared.column is not None
        address = values.pop(self.declared.column)
        return values, check_address(address, self.declared)

    def _assign(
        self, rows: pa.Table
    ) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], pa.Table]:
        """The indexes of the matching rows, and their new values."""
        one = self.statement
        places = [_column(name, rows.schema, one.table) for name in one.assignments]
        chosen = np.flatnonzero(select_rows(one.condition, one.sql, rows, one.table))
        self.matched = len(chosen)
        old = rows.take(chosen).combine_chunks()
        new = old
        for place, expression in zip(places, one.assignments.values(), strict=True):
            # All values are computed from the old row, as SQL requires.
            column = rows.schema.field(place)
            new = new.set_column(place, column, self._compute(expression, old, column))
        return chosen, new

    def _compute(self, expression: exp.Expr, old: pa.Table, target: pa.Field) -> pa.Array:
        one = self.statement
        return compute_values(expression, one.sql, old, target, one.table)


def _column(name: str, schema: pa.Schema, table: str) -> int:
    lowered = [one.lower() for one in schema.names]
    if name.lower() not in lowered:
        raise UnknownNameError(
            f"{table} has no column {name}",
            hint=nearest(name, schema.names) or "there are " + ", ".join(schema.names),
        )
    return lowered.index(name.lower())
