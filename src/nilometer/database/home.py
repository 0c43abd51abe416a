"""Where a database lives: a folder with its catalog, its logs and its queries' checkpoints."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from socket import gethostname
from typing import Final
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa

from nilometer.database.deliveries import Deliveries
from nilometer.database.lease import Lease
from nilometer.database.units import Units
from nilometer.errors import CatalogError, InputError, LogError, NilometerError
from nilometer.log.dead_letters import dead_letter_log
from nilometer.log.delete import delete_log
from nilometer.log.location import inside
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.settings import ManagerSettings

STATUS_FILE: Final = "status.json"
CATALOG_FILE: Final = "catalog.sqlite"

Selector = Callable[[pa.Table, str], set[int]]
"""The versions in a table of sensor rows that satisfy a condition."""


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
    ) -> None:
        """`path` None: a temporary folder, which goes with the process.

        `lost` is told if the catalog is lost to another database, or out of reach for long.
        """
        self.is_temporary = path is None
        self.folder = (path or Path(tempfile.mkdtemp(prefix="nilometer-"))).expanduser().absolute()
        _make(self.folder)
        self._logs = _absolute(logs or str(self.folder / "logs"))
        self._select = select
        self.units = units or Units()
        self.broken: dict[str, LogError] = {}
        """Streams whose logs cannot be used, and why: the others are not to suffer."""
        self._closing = ExitStack()
        with ExitStack() as opening:
            if self.is_temporary:
                opening.callback(shutil.rmtree, self.folder, ignore_errors=True)
            opening.callback(os.close, _take(self.folder / "lock", f"the database {self.folder}"))
            opened = SensorCatalog.open(catalog or self.folder / CATALOG_FILE)
            self.catalog = opening.enter_context(opened)
            if (file := self.catalog.file) is not None:
                lock = file.with_name(f"{file.name}.lock")
                opening.callback(os.close, _take(lock, f"the catalog {file}"))
            else:
                lease = Lease(self.catalog, _holder(self.folder), lost)
                opening.callback(_release, lease)
            self.manager = StreamManager(
                self.log_of,
                self.sensors,
                self._selected,
                find_unit=self.units.find,
                settings=ManagerSettings(identity=_identity(self.folder)),
                status_file=self.folder / STATUS_FILE,
            )
            self.manager.start()
            opening.callback(self.manager.stop)
            for declaration in self.catalog.declarations():
                self._watch(declaration)
            folders = [one.expanduser().absolute() for one in delivery_folders]
            self.deliveries = Deliveries(
                self.catalog, self.log_of, self.units, folders or [self.folder / "deliveries"]
            )
            opening.callback(self.deliveries.close)
            self._closing = opening.pop_all()

    def log_of(self, name: str) -> str:
        """Where the log of a stream, a sensor table or a query's results lies."""
        return inside(self._logs, quote(name.lower(), safe=""))

    def checkpoint_of(self, query: str) -> Path:
        """Where a query keeps how far it has come."""
        return self.folder / "checkpoints" / quote(query.lower(), safe="")

    def add_stream(self, declaration: Declaration) -> None:
        """Begin with a new stream or sensor table, and not with what another one has left."""
        self._delete_logs(declaration.name)  # a process may have ended between the steps of DROP
        self.manager.watch(declaration)

    def remove_stream(self, name: str) -> None:
        """Delete what is left of a stream or sensor table that was dropped."""
        self.manager.forget(name)
        self.broken.pop(name, None)
        self._delete_logs(name)

    def remove_query(self, name: str) -> None:
        """Delete what is left of a query that was dropped."""
        self._delete_logs(name)
        shutil.rmtree(self.checkpoint_of(name), ignore_errors=True)

    def close(self) -> None:
        """Store what was read, let all sensors go, and let others have the folder."""
        self._closing.close()

    def sensors(self, name: str) -> list[Sensor]:
        """The sensors of a sensor table, or the only one of a stream."""
        declaration = self.catalog.require_declaration(name)
        if declaration.is_sensor_table:
            return self.catalog.sensors(name)
        return [declaration.only_sensor]

    def _watch(self, declaration: Declaration) -> None:
        try:
            self.manager.watch(declaration)
        except LogError as error:
            self.broken[declaration.name] = error

    def _delete_logs(self, name: str) -> None:
        for log in (name, dead_letter_log(name)):
            delete_log(self.log_of(log))

    def _selected(self, declaration: Declaration, where: str | None) -> set[int]:
        """The numbers of the sensors that satisfy a condition."""
        sensors = self.catalog.sensors(declaration.name)
        if where is None:
            return {one.number for one in sensors}
        rows = self.catalog.sensor_rows(declaration.name)
        versions = self._select(rows, where)
        return {one.number for one in sensors if one.version in versions}


def _absolute(logs: str) -> str:
    """A path that workers in other folders understand, too."""
    return logs if "://" in logs else str(Path(logs).expanduser().absolute())


def _make(folder: Path) -> None:
    """Make a folder into which only this user can look, unless there is one to write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "lock").touch()
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
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(lock, 300).decode(errors="replace").strip()
        os.close(lock)
        raise InputError(
            f"{what} is in use",
            detail=f"{holder or 'another process'} has it open",
            hint="close it there, or use another one",
        ) from None
    os.ftruncate(lock, 0)
    with suppress(OSError):  # a full disk: who has it is for people alone
        os.pwrite(lock, f"process {os.getpid()} of {gethostname()}".encode(), 0)
    return lock


def _holder(folder: Path) -> str:
    """As whom a folder takes a catalog: it finds its own lease again, a copy of it does not."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    place = folder.stat()
    return f"{_identity(folder)} of {gethostname()} {boot} {place.st_dev}:{place.st_ino}"


def _release(lease: Lease) -> None:
    with suppress(CatalogError):  # it ends by itself
        lease.close()


def _identity(folder: Path) -> str:
    """A name that is this database's alone, and stays."""
    file = folder / "identity"
    if not file.exists():
        aside = folder / "identity.new"
        aside.write_text(f"nilometer-{uuid4().hex[:12]}")
        aside.replace(file)  # whole or not at all: an empty name would be others', too
    return file.read_text().strip()
