"""Names: each belongs to one stream, table, query or delivery, whatever the case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, Row, Table, delete, insert, select, update

from nilometer.errors import InputError, NameTakenError, UnknownNameError
from nilometer.model.names import nearest
from nilometer.sensors.catalog.schema import names
from nilometer.sql.ddl.nodes import ObjectKind

NOUNS: Final = {
    ObjectKind.STREAM: "stream",
    ObjectKind.SENSOR_TABLE: "sensor table",
    ObjectKind.TABLE: "table",
    ObjectKind.QUERY: "query",
    ObjectKind.DELIVERY: "delivery",
    ObjectKind.VIEW: "view",
    ObjectKind.ALERT: "alert",
}

_LONGEST: Final = 200
"""The maximum length of a name as a folder, where non-ASCII characters take several bytes."""
_DEAD: Final = ".dead"


class NamedEntry(NamedTuple):
    """Something that has a name."""

    id: int
    name: str
    kind: ObjectKind
    generation: int
    key: str
    """The key by which files identify it: it stays when the name changes, and is unique."""

    @property
    def noun(self) -> str:
        return NOUNS[self.kind]


def find_name(connection: Connection, name: str) -> NamedEntry | None:
    """The entry with this name, in any case."""
    statement = select(names).where(names.c.folded == name.lower())
    row = connection.execute(statement).one_or_none()
    return None if row is None else _entry(row)


def all_names(connection: Connection) -> list[NamedEntry]:
    """Everything that has a name, by name."""
    rows = connection.execute(select(names).order_by(names.c.folded))
    return [_entry(one) for one in rows]


def require_name(connection: Connection, name: str, *kinds: ObjectKind) -> NamedEntry:
    """The entry with this name, if it is of one of these kinds."""
    entry = find_name(connection, name)
    expected = _alternatives([NOUNS[kind] for kind in kinds])
    if entry is None:
        candidates = [one.name for one in all_names(connection) if one.kind in kinds]
        others = "there are " + ", ".join(candidates) if candidates else "there is none yet"
        raise UnknownNameError(
            f"there is no {expected} {name}", hint=nearest(name, candidates) or others
        )
    if entry.kind not in kinds:
        raise UnknownNameError(f"{entry.name} is a {entry.noun}, not a {expected}")
    return entry


def rows_of_kind(connection: Connection, table: Table, name: str | None = None) -> list[Row[Any]]:
    """The rows of things of one kind with their names, by name; only that of `name` if given."""
    statement = select(names.c.name, table).join_from(table, names, table.c.owner == names.c.id)
    if name is not None:
        statement = statement.where(names.c.folded == name.lower())
    return list(connection.execute(statement.order_by(names.c.folded)))


def claim_name(
    connection: Connection, name: str, kind: ObjectKind, generation: int, *, if_not_exists: bool
) -> int | None:
    """The id of a new name; None if it already exists, with the same kind, and that is allowed."""
    _require_usable(name)
    entry = find_name(connection, name)
    if entry is None:
        row = {
            "folded": name.lower(),
            "name": name,
            "kind": kind.value,
            "generation": generation,
            "key": _free_key(connection, name.lower(), generation),
        }
        inserted = connection.execute(insert(names).values(row).returning(names.c.id))
        return int(inserted.scalar_one())
    if if_not_exists and entry.kind is kind:
        return None
    raise NameTakenError(
        f"{entry.noun} {entry.name} already exists",
        detail=None if entry.kind is kind else f"a {NOUNS[kind]} needs a name of its own",
        hint=f"choose another name, or DROP {entry.kind} {entry.name} first",
    )


def rename(connection: Connection, name: NamedEntry, to: str, generation: int) -> None:
    """Rename something; what files know of it stays where it is."""
    _require_usable(to)
    other = find_name(connection, to)
    if other is not None and other.id != name.id:
        raise NameTakenError(
            f"{other.noun} {other.name} already exists", hint="choose another name"
        )
    changed = update(names).where(names.c.id == name.id)
    connection.execute(changed.values(folded=to.lower(), name=to, generation=generation))


def _free_key(connection: Connection, folded: str, generation: int) -> str:
    """The name itself, unless that key is taken by something that had the name before."""
    is_taken = connection.execute(select(names.c.id).where(names.c.key == folded)).one_or_none()
    return folded if is_taken is None else f"{folded}+{generation}"


def mark_changed(connection: Connection, name: NamedEntry, generation: int) -> None:
    """Record a change of the generation."""
    changed = update(names).where(names.c.id == name.id).values(generation=generation)
    connection.execute(changed)


def drop_name(connection: Connection, name: NamedEntry) -> None:
    """Delete a name and everything that belongs to it."""
    connection.execute(delete(names).where(names.c.id == name.id))


def require_text(text: str, what: str) -> None:
    """Refuse characters that some databases cannot store."""
    if "\0" in text or any("\ud800" <= one <= "\udfff" for one in text):
        raise InputError(
            f"{what} cannot hold this text", detail=f"got {text!r}", hint="leave out NUL characters"
        )


def _require_usable(name: str) -> None:
    """Refuse names that cannot be a log's folder: `..` is another folder."""
    require_text(name, "a name")
    if not any(one.isalnum() for one in name):
        raise InputError(
            "a name needs a letter or a digit", detail=f"got {name!r}", hint="choose another name"
        )
    if len(quote(name.lower(), safe="")) > _LONGEST:
        raise InputError(
            "the name is too long",
            detail=f"it has {len(name)} characters",
            hint=f"choose one of at most {_LONGEST} ASCII characters, or {_LONGEST // 9} others",
        )
    if name.lower().endswith(_DEAD):
        raise InputError(
            f"a name cannot end with {_DEAD}",
            detail=f"the log {name} is that of the dead letters of {name[: -len(_DEAD)]}",
            hint="choose another name",
        )


def _entry(row: Row[Any]) -> NamedEntry:
    return NamedEntry(row.id, row.name, ObjectKind(row.kind), row.generation, row.key)


def _alternatives(nouns: Sequence[str]) -> str:
    return " or ".join([", ".join(nouns[:-1]), nouns[-1]]) if len(nouns) > 1 else nouns[0]
