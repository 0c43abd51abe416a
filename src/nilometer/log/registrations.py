"""The readers of a log and their offsets: a small file beside the log for each reader."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from nilometer.errors import LogError
from nilometer.log.location import storage_at
from nilometer.log.position import Position
from nilometer.log.storage import Storage, file_names
from nilometer.log.stored_json import json_bytes, read_json

QUERY: Final = "query"
"""What a registration may name: the query that the reader belongs to, and"""
WHERE: Final = "where"
"""a condition on static columns that selects sensors; none: it needs all of them."""

_FOLDER: Final = "readers"
_SUFFIX: Final = ".json"
_LOCK: Final = f"{_FOLDER}/lock"
_LONGEST_NAME: Final = 200


@dataclass(frozen=True)
class Registration:
    """A reader of a log."""

    reader: str
    position: Position
    """The committed offset; it never goes back."""
    about: Mapping[str, Any]
    """Information for lists of readers."""
    seen: int
    """When it was last seen, in microseconds."""
    pid: int | None
    """Its process, while it is active, and"""
    host: str
    """the machine on which that runs."""
    active: bool
    named: bool
    """Whether it is kept until it is forgotten; others, until they have not been seen for long."""


def is_running(reader: Registration) -> bool:
    """Whether the process of an active reader is alive, as far as known from here."""
    if not reader.active or reader.pid is None or reader.host != socket.gethostname():
        return False
    try:
        os.kill(reader.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def free_name(location: str | Path, reader: str) -> str:
    """This name, or a similar one under which no other process currently reads the log."""
    taken = {one.reader for one in registrations(location) if is_running(one) and not _is_ours(one)}
    return reader if reader not in taken else f"{reader} of process {os.getpid()}"


def _is_ours(one: Registration) -> bool:
    return one.pid == os.getpid()


def register(
    location: str | Path,
    reader: str,
    position: Position,
    about: Mapping[str, Any],
    *,
    now: int,
    named: bool,
    anew: bool = False,
) -> Registration:
    """Register a reader; one that is registered already keeps its offset, unless `anew`."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        before = _read(storage, _name(reader))
        at = position if before is None or anew else before.position
        return _write(
            storage,
            Registration(
                reader, at, dict(about), now, os.getpid(), socket.gethostname(), True, named
            ),
        )


def commit(
    location: str | Path,
    reader: str,
    position: Position,
    *,
    now: int,
    about: Mapping[str, Any] | None = None,
) -> Registration:
    """Commit the offset of a reader, and update its information."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        before = _registered(storage, reader)
        at = max(before.position, position)
        noted = before.about if about is None else dict(about)
        return _write(storage, replace(before, position=at, seen=now, about=noted))


def commit_all(location: str | Path, positions: Mapping[str, Position], *, now: int) -> None:
    """The same for many readers at once; those no longer registered are skipped."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        contents = {}
        for before in _read_all(storage, map(_name, positions)):
            position = max(before.position, positions[before.reader])
            one = replace(before, position=position, seen=now)
            contents[_name(one.reader)] = json_bytes(asdict(one))
        storage.write_all(contents)


def release_all(location: str | Path, readers: Collection[str], *, now: int) -> None:
    """Mark many readers as stopped."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        registered = _read_all(storage, map(_name, readers))
        storage.write_all(
            {
                _name(one.reader): json_bytes(
                    asdict(replace(one, seen=now, active=False, pid=None))
                )
                for one in registered
            }
        )


def touch(location: str | Path, reader: str, *, now: int) -> Registration:
    """Mark the reader as alive."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        return _write(storage, replace(_registered(storage, reader), seen=now))


def release(location: str | Path, reader: str, *, now: int) -> Registration:
    """Mark the reader as stopped; a named one may resume."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        before = _registered(storage, reader)
        return _write(storage, replace(before, seen=now, active=False, pid=None))


def forget(location: str | Path, reader: str) -> None:
    """Remove a reader, if it is registered."""
    storage = storage_at(location)
    with storage.exclusive(_LOCK):
        storage.delete(_name(reader))


def forget_readers(location: str | Path, query: str) -> None:
    """Remove the readers that belong to a query or have its name."""
    for reader in readers_of(location, query):
        forget(location, reader)


def hold_readers(location: str | Path, query: str, *, now: int) -> None:
    """Let this process hold, for the readers of a query, what they have not read.

    So while a query waits for its restart its sensors stay connected.
    """
    storage = storage_at(location)
    for reader in readers_of(location, query):
        with storage.exclusive(_LOCK):
            before = _registered(storage, reader)
            pid, host = os.getpid(), socket.gethostname()
            _write(storage, replace(before, seen=now, active=True, pid=pid, host=host))


def readers_of(location: str | Path, query: str) -> list[str]:
    """The readers that belong to a query or have its name."""
    registered = registrations(location)
    return [one.reader for one in registered if query in (one.reader, one.about.get(QUERY))]


def registrations(location: str | Path) -> list[Registration]:
    """All readers of a log, by name."""
    return registered_in(storage_at(location))


def find_reader(location: str | Path, reader: str) -> Registration | None:
    """The reader of this name."""
    return _read(storage_at(location), _name(reader))


def registered_in(storage: Storage) -> list[Registration]:
    names = (f"{_FOLDER}/{name}" for name in file_names(storage, _FOLDER, _SUFFIX))
    return sorted(_read_all(storage, names), key=lambda one: one.reader)


def _registered(storage: Storage, reader: str) -> Registration:
    registration = _read(storage, _name(reader))
    if registration is None:
        raise LogError(
            "unknown reader of the log",
            detail=f"{reader!r} is not registered at {storage.location}",
            hint="register it first",
        )
    return registration


def _read(storage: Storage, name: str) -> Registration | None:
    fields = read_json(storage, name)
    if fields is None:
        return None
    return Registration(**{**fields, "position": Position.from_json(fields["position"])})


def _read_all(storage: Storage, names: Iterable[str]) -> list[Registration]:
    """Those that exist."""
    registrations = storage.map(lambda name: _read(storage, name), names)
    return [one for one in registrations if one is not None]


def _write(storage: Storage, one: Registration) -> Registration:
    storage.write(_name(one.reader), [json_bytes(asdict(one))])
    return one


def _name(reader: str) -> str:
    name = quote(reader, safe="").replace(".", "%2E")  # a file that starts with a dot is hidden
    if not 0 < len(name) <= _LONGEST_NAME:
        name = hashlib.sha256(reader.encode()).hexdigest()
    return f"{_FOLDER}/{name}{_SUFFIX}"
