"""The values of an INSERT, checked against their columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from nilometer.errors import (
    InputError,
    Place,
    PredicateError,
    SqlError,
    SqlTypeError,
    UnknownNameError,
)
from nilometer.kernels.expression_types import is_number, type_name
from nilometer.kernels.read_times import declared_type, form_of
from nilometer.model.names import count, nearest
from nilometer.model.secrets import options_with_secrets, with_secrets
from nilometer.sensors.catalog.outcome import placed
from nilometer.sensors.catalog.stored_sensors import SensorRow
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.find_types import check_options, check_reachable
from nilometer.sensors.log_options import read_stream_options
from nilometer.sensors.types.address import ADDRESS, read_address
from nilometer.sql.ddl.nodes import Insert
from nilometer.sql.ddl.store_values import store_constant


@dataclass(frozen=True)
class InsertedRows:
    """The rows of an INSERT into a table with these columns."""

    statement: Insert
    table_name: str
    schema: pa.Schema

    def table(self) -> pa.Table:
        """The rows, NULL where a column has no value."""
        return pa.Table.from_pylist(self._rows, self.schema)

    def sensors(self, declared: Declaration) -> list[SensorRow]:
        """The rows as sensors: each needs an address."""
        column = declared.column
        assert column is not None
        if column not in self._columns:
            raise SqlError(
                f"the stream column {column} needs a value",
                place=self.statement.place,
                hint="it says how the sensor is reached: an address, or a JSON object of options",
            )
        sensors: list[SensorRow] = []
        for place, row in enumerate(self._rows):
            values = dict(row)
            with placed(self._place(place)):
                sensors.append((values, check_address(values.pop(column), declared)))
        return sensors

    @cached_property
    def _columns(self) -> list[str]:
        """The given columns, spelled as declared."""
        if self.statement.columns is None:
            return list(self.schema.names)
        by_name = {name.lower(): name for name in self.schema.names}
        for name in self.statement.columns:
            if name.lower() not in by_name:
                raise UnknownNameError(
                    f"{self.table_name} has no column {name}",
                    hint=nearest(name, self.schema.names)
                    or "there are " + ", ".join(self.schema.names),
                )
        return [by_name[name.lower()] for name in self.statement.columns]

    @cached_property
    def _rows(self) -> list[dict[str, object]]:
        return [self._row(place, row) for place, row in enumerate(self.statement.rows)]

    def _row(self, place: int, row: tuple[object, ...]) -> dict[str, object]:
        if len(row) != len(self._columns):
            raise SqlError(
                f"row {place + 1} has {count(len(row), 'value')}, "
                f"but {self.table_name} has {count(len(self._columns), 'column')}",
                place=self._place(place),
                detail="the columns are " + ", ".join(self._columns),
                hint="give every column a value, NULL if there is none, or name the columns",
            )
        return {
            name: self._value(place, name, value)
            for name, value in zip(self._columns, row, strict=True)
        }

    def _value(self, place: int, name: str, value: object) -> object:
        if value is None:
            return None
        column = self.schema.field(name)
        kind = column.type
        try:
            return store_constant(value, kind, form_of(column))
        except PredicateError as error:
            # The message about numbers mentions expressions, but this is a constant.
            hint = None if is_number(kind) else error.hint
        except (pa.ArrowException, OverflowError):
            hint = None
        raise SqlTypeError(
            f"row {place + 1}, column {name}: {declared_type(column)} cannot store "
            f"{_value_text(value)}",
            place=self._place(place),
            hint=hint or f"give a value of type {type_name(kind)}, or NULL",
        )

    def _place(self, row: int) -> Place:
        places = self.statement.row_places
        return places[row] if row < len(places) else self.statement.place


def check_address(address: object, declared: Declaration) -> str:
    """The value of a stream column, if its options are valid for the stream type."""
    if not isinstance(address, str) or not address.strip():
        raise InputError(
            f"the stream column {declared.column} needs a value",
            detail="got NULL" if address is None else f"got {address!r}",
            hint="it says how the sensor is reached: an address, or a JSON object of options",
        )
    reached, options = read_address(address)
    reached = with_secrets(reached or declared.options.get(ADDRESS, ""))
    check_reachable(declared.stream_type, reached)
    if options:
        type_options = read_stream_options({**declared.options, **options}).of_type or {}
        both = options_with_secrets(type_options)
        check_options(
            declared.stream_type, {name: one for name, one in both.items() if name != ADDRESS}
        )
    return address


def _value_text(value: object) -> str:
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    text = text.upper() if isinstance(value, bool) else text
    return text if len(text) <= 60 else text[:59] + "…"
