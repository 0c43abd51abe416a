"""`nilometer backup`: stores an image of a database in a destination that holds many of them.

An object is bytes stored under their checksum, so what several backups share is stored once.
Small files are packed together. A backup exists once its manifest does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from nilometer.errors import BackupError
from nilometer.log.local_storage import LocalStorage
from nilometer.log.location import storage_at
from nilometer.log.storage import Storage
from nilometer.upkeep.format import read_format
from nilometer.upkeep.image import image_of
from nilometer.upkeep.image_file import ImageFile
from nilometer.upkeep.manifest import (
    OBJECTS,
    BackupFile,
    Manifest,
    backup_names,
    known_objects,
    new_name,
    read_manifest,
    write_manifest,
)
from nilometer.upkeep.remove import BACKUP, at_work
from nilometer.version import VERSION

_SMALL: Final = 256 << 10
_PACK: Final = 16 << 20
_BLOCK: Final = 4 << 20


@dataclass(frozen=True)
class BackupMade:
    """What a backup did."""

    manifest: Manifest
    written: int
    """Bytes that were not stored yet."""


def make_backup(folder: Path, destination: str, logs: Path | None = None) -> BackupMade:
    """Add a backup of a database folder to a destination; it may be in use meanwhile."""
    folder = folder.expanduser().absolute()
    read_format(folder)
    storage = _storage_of(destination, folder)
    with at_work(storage, BACKUP):
        with image_of(folder, logs) as files:
            adding = _Adding(storage, known_objects(storage), _known_files(storage, folder))
            stored = adding.add(files)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(new_name(storage), now, VERSION, str(folder), tuple(stored))
        write_manifest(storage, manifest)
    return BackupMade(manifest, adding.written)


def list_backups(destination: str) -> list[Manifest | BackupError]:
    """The backups in a destination, the oldest first; what is wrong with those that are damaged."""
    storage = storage_at(destination)
    backups: list[Manifest | BackupError] = []
    for name in backup_names(storage):
        try:
            backups.append(read_manifest(storage, name))
        except BackupError as error:
            backups.append(error)
    return backups


def _storage_of(destination: str, folder: Path) -> Storage:
    """The storage for backups; refuses one inside the database, which would contain itself."""
    storage = storage_at(destination)
    if not isinstance(storage, LocalStorage):
        storage.make()
        return storage
    place = storage.folder.resolve()
    if folder.resolve() in (place, *place.parents):
        raise BackupError(
            "a backup cannot be inside the database itself",
            detail=f"{destination} is in {folder}",
            hint="choose another folder, preferably on another disk, or a URI such as s3://bucket/folder",
        )
    place.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds all that the database does
    return storage


def _known_files(storage: Storage, folder: Path) -> dict[tuple[str, str], BackupFile]:
    """Files that never change and are in the last backup of this folder, by path and stamp."""
    for name in reversed(backup_names(storage)):
        with suppress(BackupError):
            manifest = read_manifest(storage, name)
            if manifest.database == str(folder):
                return {
                    (one.path, one.stamp): one for one in manifest.files if one.stamp is not None
                }
    return {}


@dataclass
class _Adding:
    """Adds objects to a destination."""

    storage: Storage
    objects: dict[str, int]
    known: dict[tuple[str, str], BackupFile]
    written: int = 0
    _pack: list[tuple[BackupFile, bytes]] = field(default_factory=list)
    _kept: list[BackupFile] = field(default_factory=list)

    def add(self, files: Iterable[ImageFile]) -> list[BackupFile]:
        """Store what is missing, and return the location of everything."""
        for one in files:
            self._add_one(one)
        self._write_pack()
        return sorted(self._kept, key=lambda one: one.path)

    def _add_one(self, file: ImageFile) -> None:
        stamp = _stamp(file)
        before = self.known.get((file.path, stamp)) if stamp is not None else None
        if before is not None and self._has(before):
            self._kept.append(before)
        elif file.length < _SMALL:
            content = b"".join(_blocks(file))
            made = BackupFile(file.path, len(content), sha256(content).hexdigest(), "", 0, stamp)
            self._pack.append((made, content))
            if sum(len(one) for _, one in self._pack) >= _PACK:
                self._write_pack()
        else:
            digest = _digest(_blocks(file))
            self._write(digest, file.length, _blocks(file))
            self._kept.append(BackupFile(file.path, file.length, digest, digest, 0, stamp))

    def _has(self, file: BackupFile) -> bool:
        return self.objects.get(file.object, -1) >= file.start + file.size

    def _write_pack(self) -> None:
        """Store small files together."""
        pack, self._pack = self._pack, []
        if not pack:
            return
        contents = [content for _, content in pack]
        name, start = _digest(contents), 0
        self._write(name, sum(map(len, contents)), contents)
        for made, content in pack:
            self._kept.append(replace(made, object=name, start=start))
            start += len(content)

    def _write(self, name: str, size: int, blocks: Iterable[bytes]) -> None:
        if self.objects.get(name) != size:
            self.storage.write(f"{OBJECTS}/{name}", blocks)
            self.objects[name] = size
            self.written += size


def _stamp(file: ImageFile) -> str | None:
    """By what a file is known again that never changes."""
    if not file.is_sealed or not isinstance(file.source, Path):
        return None
    status = file.source.stat()
    return f"{status.st_ino}:{status.st_mtime_ns}:{status.st_size}"


def _blocks(file: ImageFile) -> Iterator[bytes]:
    """The bytes of a file of an image."""
    if isinstance(file.source, bytes):
        yield file.source
        return
    rest = file.length
    with file.source.open("rb") as source:
        while rest:
            block = source.read(min(_BLOCK, rest))
            if not block:
                raise BackupError(
                    "a file is shorter than it should be",
                    detail=f"{file.path} lacks {rest} bytes",
                    hint="nilometer check says what else is damaged",
                )
            rest -= len(block)
            yield block


def _digest(blocks: Iterable[bytes] | Sequence[bytes]) -> str:
    digest = sha256()
    for one in blocks:
        digest.update(one)
    return digest.hexdigest()
