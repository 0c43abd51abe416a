"""The home of a database: a folder with its catalog, logs and checkpoints."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from socket import gethostname
from typing import Final

import pyarrow as pa

from nilometer.database.alerts import Alerts
from nilometer.database.deliveries import Deliveries
from nilometer.database.lease import Lease
from nilometer.database.storage_watch import StorageWatch
from nilometer.database.units import Units
from nilometer.errors import (
    CatalogError,
    InputError,
    InUseError,
    LogError,
    NilometerError,
)
from nilometer.log.dead_letters import DEAD, dead_letter_log
from nilometer.log.delete import delete_log
from nilometer.log.location import in_object_store, inside
from nilometer.log.options import Durability
from nilometer.model.served_at import LOCK_FILE, written_holder
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.log_options import read_stream_options
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.upkeep.backup import BackupMade, make_backup
from nilometer.upkeep.catalog_place import remember_catalog, settle_catalog
from nilometer.upkeep.format import read_format, write_format
from nilometer.upkeep.identity import take_identity
from nilometer.upkeep.kept_buckets import settle_buckets
from nilometer.upkeep.logs_place import settle_logs
from nilometer.upkeep.places import CHECKPOINTS, DELIVERIES, WRITE_AHEAD, file_name

STATUS_FILE: Final = "status.json"
_TRIES: Final = 5
_LOOKED_AT_SECONDS: Final = 0.02

Selector = Callable[[pa.Table, str], set[int]]
"""Selects from a table of sensor rows the versions that satisfy a condition."""


class Home:
    """An open database folder; one process holds it at a time."""

    def __init__(
        self,
        path: Path | None,
        catalog: str | None,
        logs: str | None,
        select: Selector,
        units: Units | None = None,
        delivery_folders: Sequence[Path] = (),
        lost: Callable[[NilometerError], None] = lambda _: None,
        buckets: int | None = None,
    ) -> None:
        """`path` None: a temporary folder, deleted when the process ends.

        `lost` is called if the catalog is lost to another database, or out of reach for long.
        """
        self.is_temporary = path is None
        self.folder = _place(path or Path(tempfile.mkdtemp(prefix="nilometer-")))
        _make(self.folder)
        self._select = select
        self.units = units or Units()
        self.broken: dict[str, LogError] = {}
        """Streams whose logs cannot be used, and why; the others are not affected."""
        self._altering = threading.Lock()
        self._closing = ExitStack()
        with ExitStack() as opening:
            if self.is_temporary:
                opening.callback(shutil.rmtree, self.folder, ignore_errors=True)
            opening.callback(
                os.close, _take(self.folder / LOCK_FILE, f"the database {self.folder}")
            )
            read_format(self.folder)  # a newer one is refused before anything is changed
            self.logs = settle_logs(self.folder, logs)
            self.buckets = settle_buckets(self.folder, buckets)
            """How many new queries with an engine of their own get; None: nobody has said it."""
            identity = take_identity(self.folder)
            opened = SensorCatalog.open(settle_catalog(self.folder, catalog))
            self.catalog = opening.enter_context(opened)
            if (file := self.catalog.file) is not None:
                beside = file.with_name(f"{file.name}.lock")
                opening.callback(os.close, _take(beside, f"the catalog {file}"))
            else:
                lease = Lease(self.catalog, _holder(self.folder, identity), lost)
                opening.callback(_release, lease)
            self.manager = StreamManager(
                self.log_of,
                self.sensors,
                self._selected,
                find_unit=self.units.find,
                settings=ManagerSettings(identity=identity),
                status_file=self.folder / STATUS_FILE,
                ahead_of=self.ahead_of,
            )
            self.manager.start()
            opening.callback(self.manager.stop)
            for declaration in self.catalog.declarations():
                self._watch(declaration)
            self.alerts = Alerts(self.catalog, self.log_of)
            opening.callback(self.alerts.close)
            folders = [one.expanduser().absolute() for one in delivery_folders]
            self.deliveries = Deliveries(
                self.catalog, self.log_of, self.units, folders or [self.folder / DELIVERIES]
            )
            opening.callback(self.deliveries.close)
            self.storage = StorageWatch(self)
            self.storage.start()
            opening.callback(self.storage.stop)
            with suppress(OSError):  # a full disk: it is written the next time
                write_format(self.folder)
                remember_catalog(self.folder, catalog)
            self._closing = opening.pop_all()

    def log_of(self, name: str) -> str:
        """The location of the log of a stream, a sensor table or a query's results."""
        return inside(self.logs, self._file_of(name))

    def ahead_of(self, name: str) -> Path:
        """The folder of the write-ahead of a stream or sensor table, if it has one."""
        return self.folder / WRITE_AHEAD / self._file_of(name)

    def checkpoint_of(self, query: str) -> Path:
        """The location of a query's checkpoint."""
        return self.folder / CHECKPOINTS / file_name(self.catalog.key(query))

    def add_stream(self, declaration: Declaration) -> None:
        """Add a stream or sensor table, without what a dropped one of its name left behind."""
        self.require_durability(declaration)
        self.delete(self.files_of(declaration.name))  # DROP may have ended between its steps
        self.manager.watch(declaration)

    def require_durability(self, declaration: Declaration) -> None:
        """Refuse rows that should be in an object store where there is none."""
        durability = read_stream_options(declaration.options).log.durability
        if durability is Durability.STORE and not in_object_store(self.logs):
            raise InputError(
                f"{declaration.name} cannot have durability 'store'",
                detail="the logs of this database are in a folder, not in an object store",
                hint="leave the option out: rows are on the disk when they are acknowledged; or "
                "move the logs: nilometer move-logs",
            )

    def change_stream(self, name: str, before: Declaration) -> None:
        """Apply an altered stream or sensor table; `before`: its old declaration."""
        with self._altering:  # the last to arrive applies the last change
            declared = self.catalog.require_declaration(name)
            is_same = (declared.name, _of_type(declared)) == (before.name, _of_type(before))
            self.manager.forget(before.name, pause=is_same)
            self.broken.pop(before.name, None)
            try:
                self.manager.watch(declared)
                self.alerts.source_changed(declared.name)
            except LogError as error:
                self.broken[declared.name] = error
                raise

    def files_of(self, name: str) -> list[str]:
        """The locations of all files that belong to a name."""
        names = (name, dead_letter_log(name))
        logs = [*map(self.log_of, names), *(str(self.ahead_of(one)) for one in names)]
        return [*logs, str(self.checkpoint_of(name))]

    def remove_stream(self, name: str, files: Sequence[str]) -> None:
        """Delete what is left of a stream or sensor table that was dropped."""
        self.manager.forget(name)
        self.broken.pop(name, None)
        self.delete(files)

    def delete(self, files: Sequence[str]) -> None:
        """Delete what is left of something that was dropped."""
        *logs, checkpoint = files
        for log in logs:
            delete_log(log)
        shutil.rmtree(checkpoint, ignore_errors=True)

    def back_up(self, destination: str) -> BackupMade:
        """Add a backup of the folder to a destination."""
        logs = None if "://" in self.logs else Path(self.logs)
        return make_backup(self.folder, destination, logs)

    def close(self) -> None:
        """Store what was read, disconnect all sensors, and release the folder."""
        self._closing.close()

    def sensors(self, name: str) -> list[Sensor]:
        """The sensors of a sensor table, or the single sensor of a stream."""
        declaration = self.catalog.require_declaration(name)
        if declaration.is_sensor_table:
            return self.catalog.sensors(name)
        return [declaration.only_sensor]

    def _file_of(self, name: str) -> str:
        """The name of the folder of a log."""
        owner = name.lower().removesuffix(DEAD)
        return file_name(self.catalog.key(owner) + (DEAD if owner != name.lower() else ""))

    def _watch(self, declaration: Declaration) -> None:
        try:
            self.manager.watch(declaration)
        except LogError as error:
            self.broken[declaration.name] = error

    def _selected(self, declaration: Declaration, where: str | None) -> set[int]:
        """The numbers of the sensors that satisfy a condition."""
        sensors = self.catalog.sensors(declaration.name)
        if where is None:
            return {one.number for one in sensors}
        rows = self.catalog.sensor_rows(declaration.name)
        versions = self._select(rows, where)
        return {one.number for one in sensors if one.version in versions}


def _place(path: Path) -> Path:
    """The absolute path of the folder; `..` follows links, which Spark does not know."""
    folder = path.expanduser().absolute()
    return folder.resolve() if ".." in folder.parts else folder


def _of_type(declared: Declaration) -> object:
    """The options with which its sensors are contacted."""
    return read_stream_options(declared.options).of_type


def _make(folder: Path) -> None:
    """Make a folder that only this user can read, unless a writable one exists."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / LOCK_FILE).touch()
    except OSError as error:
        raise InputError(
            f"the database {folder} cannot be opened",
            detail=error.strerror,
            hint="it needs a folder that this user may write to",
        ) from error


def _take(file: Path, what: str) -> int:
    """Hold a folder or a catalog, so that no other process runs the same queries and sensors."""
    try:
        lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        hint = "it needs a folder that this user may write to"
        raise InputError(f"{what} cannot be opened", detail=str(error), hint=hint) from error
    if not _locked(lock):
        holder = os.read(lock, 300).decode(errors="replace").strip()
        os.close(lock)
        raise InUseError(
            f"{what} is in use",
            detail=f"{holder or 'another process'} has it open",
            hint="close it there, or use another one",
        )
    os.ftruncate(lock, 0)
    with suppress(OSError):  # a full disk: the holder's name is only informative
        os.pwrite(lock, written_holder().encode(), 0)
    return lock


def _locked(lock: int) -> bool:
    """Lock a file; a process that only checks whether it is held locks it for a moment."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(_LOOKED_AT_SECONDS)
    return False


def _holder(folder: Path, identity: str) -> str:
    """The holder's id for a catalog: a folder finds its own lease again, a copy does not."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    place = folder.stat()
    return f"{identity} of {gethostname()} {boot} {place.st_dev}:{place.st_ino}"


def _release(lease: Lease) -> None:
    with suppress(CatalogError):  # it expires by itself
        lease.close()
