"""What a backup consists of: a small file that names all others, with sizes and checksums."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, Final

from nilometer.errors import BackupError
from nilometer.log.storage import Storage

FORMAT: Final = 1
OBJECTS: Final = "objects"
BACKUPS: Final = "backups"
_SUFFIX: Final = ".json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class BackupFile:
    """A file of the database, and where its bytes are in the backup."""

    path: str
    size: int
    sha256: str
    object: str
    """Of that name: the checksum of all its bytes, of which these are some."""
    start: int = 0
    stamp: str | None = None
    """Of a file that never changes: what the next backup recognises it by."""


@dataclass(frozen=True)
class Manifest:
    """One backup."""

    name: str
    created: str
    release: str
    database: str
    """The folder that was backed up."""
    files: tuple[BackupFile, ...]

    @property
    def size(self) -> int:
        """Bytes of the database."""
        return sum(one.size for one in self.files)

    def to_bytes(self) -> bytes:
        content = {"format": FORMAT, **asdict(self)}
        text = json.dumps(content, ensure_ascii=False)
        return json.dumps({"sha256": sha256(text.encode()).hexdigest(), "manifest": text}).encode()

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> Manifest:
        """The manifest stored under this name; raises BackupError if it is damaged."""
        try:
            outer: dict[str, str] = json.loads(content)
            text = outer["manifest"]
            if sha256(text.encode()).hexdigest() != outer["sha256"]:
                raise ValueError("its checksum is wrong")
            fields: dict[str, Any] = json.loads(text)
            form = fields.pop("format")
            if form != FORMAT:
                raise _other_format(name, form)
            if fields["name"] != name:
                raise ValueError(f"it is named {fields['name']!r}")
            files = tuple(_checked(BackupFile(**one)) for one in fields.pop("files"))
            return cls(**fields, files=files)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupError(
                f"the manifest of the backup {name} is damaged",
                detail=str(error),
                hint="restore another backup: nilometer backup --list",
            ) from None


def _checked(file: BackupFile) -> BackupFile:
    """A file whose path stays inside of the database, and whose object inside of the backup."""
    path = PurePosixPath(file.path)
    if path.is_absolute() or not path.parts or {"..", "."} & {*file.path.split("/")}:
        raise ValueError(f"{file.path!r} is not a path inside a database")
    if not _HASH.fullmatch(file.object) or not _HASH.fullmatch(file.sha256):
        raise ValueError(f"{file.path} has no checksum")
    if file.size < 0 or file.start < 0:
        raise ValueError(f"{file.path} has no size")
    return file


def _other_format(name: str, form: object) -> BackupError:
    return BackupError(
        f"the backup {name} was written by another release of Nilometer",
        detail=f"it has format {form}, this release reads {FORMAT}",
        hint="use the release that wrote it, or a later one",
    )


def new_name(storage: Storage) -> str:
    """A name for a new backup, after all existing ones."""
    names, now = set(backup_names(storage)), datetime.now(UTC)
    name = base = now.strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while name in names:
        number += 1
        name = f"{base}-{number:02d}"
    return name


def backup_names(storage: Storage) -> list[str]:
    """The names of the backups in a place, oldest first."""
    names = (name for name, _ in storage.files(BACKUPS) if name.endswith(_SUFFIX))
    return sorted(name.removesuffix(_SUFFIX) for name in names)


def read_manifest(storage: Storage, name: str) -> Manifest:
    """Read the manifest of the backup of this name."""
    if not _NAME.fullmatch(name):
        raise BackupError(f"{name!r} is not the name of a backup")
    try:
        content = storage.read(f"{BACKUPS}/{name}{_SUFFIX}")
    except FileNotFoundError:
        names = backup_names(storage)
        raise BackupError(
            f"there is no backup {name} in {storage.location}",
            detail=f"there are {', '.join(names)}" if names else "there are none",
            hint="nilometer backup --list shows them",
        ) from None
    return Manifest.from_bytes(content, name)


def write_manifest(storage: Storage, manifest: Manifest) -> None:
    """Write the manifest, which completes a backup whose objects are all stored."""
    storage.write(f"{BACKUPS}/{manifest.name}{_SUFFIX}", [manifest.to_bytes()])


def newest(storage: Storage) -> Manifest:
    """The newest backup."""
    names = backup_names(storage)
    if not names:
        raise BackupError(
            f"there are no backups in {storage.location}",
            hint="nilometer backup DATABASE DESTINATION makes one",
        )
    return read_manifest(storage, names[-1])


def known_objects(storage: Storage) -> dict[str, int]:
    """The stored objects, with their sizes."""
    return dict(storage.files(OBJECTS))
