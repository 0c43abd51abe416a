"""What ALTER changes in a stream or sensor table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import DurationError, NameTakenError, SqlError, UnknownNameError
from nilometer.model.names import nearest
from nilometer.model.time import FOREVER, parse_duration
from nilometer.sensors.declaration import Declaration, file_name, with_file_name
from nilometer.sql.ddl.parts import (
    AddColumn,
    ColumnName,
    DropColumn,
    GivenOption,
    RenameColumn,
    SetOptions,
)
from nilometer.sql.ddl.read_columns import RESERVED

NONE: Final = "none"
"""The value that resets an option, as if it had never been given."""
_LENGTHS: Final[Mapping[str, int | None]] = {
    "lateness": 0,
    "idle": None,
    "every": None,
    "history": 0,
}
"""The times declared among the columns, and what holds where they are missing."""
_WITHOUT_END: Final = {"history": "forever", "idle": "never"}

Altering = SetOptions | AddColumn | DropColumn | RenameColumn


def altered(declared: Declaration, change: Altering, number: int) -> Declaration:
    """The declaration with this change, identified by this number."""
    match change:
        case SetOptions(options):
            return _with_options(declared, options)
        case AddColumn(column, name):
            _require_new(declared, name)
            added = with_file_name(column.field, f"{column.name}+{number}")
            if _is_reading(declared, name):
                return replace(declared, readings=declared.readings.append(added))
            assert declared.static is not None
            return replace(declared, static=declared.static.append(added))
        case DropColumn(name):
            return _without(declared, name)
        case RenameColumn(name, to):
            return _renamed(declared, name, to)


def _with_options(declared: Declaration, changes: Mapping[str, GivenOption]) -> Declaration:
    lengths: dict[str, Any] = {}
    options = dict(declared.options)
    for name, option in changes.items():
        if name in _LENGTHS:
            lengths[name] = _length(name, option)
        elif option.value.lower() == NONE:
            if name not in options:
                hint = nearest(name, options) or f"it has {', '.join(options) or 'no options'}"
                raise option.refusal(f"{declared.name} has no option {name}", hint=hint)
            del options[name]
        else:
            options[name] = option.value
    return replace(declared, options=options, **lengths)


def _length(name: str, option: GivenOption) -> int | None:
    text = option.value.lower()
    if text == NONE:
        return _LENGTHS[name]
    if text == _WITHOUT_END.get(name):
        return FOREVER
    try:
        length = parse_duration(option.value)
    except DurationError as error:
        raise option.refusal(
            f"option {name} cannot be used", detail=error.message, hint=error.hint
        ) from None
    if name in ("idle", "every") and not length:
        hint = f"write {name} = none to remove it"
        raise option.refusal(f"option {name} must be greater than zero", hint=hint)
    return length


def _is_reading(declared: Declaration, name: ColumnName) -> bool:
    """Whether a column belongs to the readings; the others are static."""
    if declared.column is None:
        return True
    if name.inside is not None and name.inside.lower() != declared.column.lower():
        raise UnknownNameError(
            f"{declared.name} has no stream column {name.inside}",
            place=name.place,
            hint=f"write {declared.column}.{name.name}",
        )
    return name.inside is not None


def _columns(declared: Declaration, name: ColumnName) -> pa.Schema:
    return declared.readings if _is_reading(declared, name) else declared.static


def _require_new(declared: Declaration, name: ColumnName) -> None:
    """Refuse a name that a column already has, or that rows have by themselves."""
    if name.name.lower() in RESERVED:
        raise SqlError(
            f"{name.name} cannot be the name of a column",
            place=name.place,
            detail="every row already has a column of that name",
            hint="choose another name",
        )
    known = list(_columns(declared, name).names)
    if declared.column is not None and name.inside is None:
        known.append(declared.column)
    if taken := [one for one in known if one.lower() == name.name.lower()]:
        raise NameTakenError(
            f"{declared.name} has a column {taken[0]} already",
            place=name.place,
            hint="choose another name",
        )


def _place(declared: Declaration, name: ColumnName) -> int:
    """The position of a column among its neighbours."""
    columns = _columns(declared, name)
    for place, one in enumerate(columns.names):
        if one.lower() == name.name.lower():
            return place
    hint = nearest(name.name, columns.names) or f"there are {', '.join(columns.names)}"
    fields = [one.lower() for one in declared.readings.names]
    if declared.column is not None and name.inside is None and name.name.lower() in fields:
        hint = f"write {declared.column}.{name.name}: it is a field of the readings"
    raise UnknownNameError(
        f"{declared.name} has no column {name.name}", place=name.place, hint=hint
    )


def _without(declared: Declaration, name: ColumnName) -> Declaration:
    if _is_stream_column(declared, name):
        raise SqlError(
            f"{declared.column} is where the readings of {declared.name} are",
            place=name.place,
            hint=f"DROP SENSOR TABLE {declared.name} drops all of it",
        )
    place, columns = _place(declared, name), _columns(declared, name)
    is_reading = _is_reading(declared, name)
    if is_reading and columns.names[place] in (declared.time, declared.end):
        raise SqlError(
            f"{columns.names[place]} holds the times of {declared.name}",
            place=name.place,
            hint="the TIME column of a stream cannot be dropped",
        )
    if len(columns) == 1:
        raise SqlError(
            f"{columns.names[0]} is the only column", place=name.place, hint="add another one first"
        )
    if is_reading:
        return replace(declared, readings=columns.remove(place))
    before = declared.place - (place < declared.place)
    return replace(declared, static=columns.remove(place), place=before)


def _is_stream_column(declared: Declaration, name: ColumnName) -> bool:
    own = declared.column
    return own is not None and name.inside is None and own.lower() == name.name.lower()


def _renamed(declared: Declaration, name: ColumnName, to: ColumnName) -> Declaration:
    if name.name.lower() != to.name.lower():
        _require_new(declared, to)
    if _is_stream_column(declared, name):
        return replace(declared, column=to.name)
    place, columns = _place(declared, name), _columns(declared, name)
    before = columns.field(place)
    field = with_file_name(before.with_name(to.name), file_name(before))
    changed = columns.set(place, field)
    if not _is_reading(declared, name):
        return replace(declared, static=changed)
    time, end = (
        to.name if column == before.name else column for column in (declared.time, declared.end)
    )
    return replace(declared, readings=changed, time=time, end=end)
