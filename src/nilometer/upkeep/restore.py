"""`nilometer restore`: restores a database from a backup, wholly or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from nilometer.errors import BackupError, InputError
from nilometer.log.local_storage import sync_file_system, sync_folder
from nilometer.log.location import storage_at
from nilometer.log.storage import Storage
from nilometer.upkeep.manifest import OBJECTS, BackupFile, Manifest, newest, read_manifest

_BLOCK: Final = 4 << 20


def restore_backup(source: str, folder: Path, name: str | None = None) -> Manifest:
    """Restore a database folder from the newest or a named backup; returns which one it was.

    All checksums are verified, and everything is on the disk, before the folder has its name.
    """
    folder = folder.expanduser().absolute()
    storage = storage_at(source)
    manifest = newest(storage) if name is None else read_manifest(storage, name)
    _require_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.restoring-{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(mode=0o700)
    try:
        for one in manifest.files:
            _write(storage, one, aside / one.path)
        sync_file_system(aside)
        _require_free(folder)
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    sync_folder(folder.parent)
    return manifest


def blocks_of(storage: Storage, file: BackupFile) -> Iterator[bytes]:
    """The bytes of a file in a backup; raises BackupError if they differ from those stored."""
    digest, got = sha256(), 0
    try:
        with storage.open(f"{OBJECTS}/{file.object}") as opened:
            while got < file.size:
                block = opened.read_at(file.start + got, min(_BLOCK, file.size - got)).to_pybytes()
                if not block:
                    break
                got += len(block)
                digest.update(block)
                yield block
    except FileNotFoundError:
        raise _damaged(storage, file, "it is not there") from None
    if got != file.size:
        raise _damaged(storage, file, f"it is {file.size - got} bytes too short")
    if digest.hexdigest() != file.sha256:
        raise _damaged(storage, file, "its checksum is wrong")


def _write(storage: Storage, file: BackupFile, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as written:
        for block in blocks_of(storage, file):
            written.write(block)


def _require_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} is not empty",
            detail="a database is restored into a new folder",
            hint="choose another folder, or move this one away first",
        )


def _damaged(storage: Storage, file: BackupFile, why: str) -> BackupError:
    return BackupError(
        "the backup is damaged",
        detail=f"{file.path}, in {storage.location}/{OBJECTS}/{file.object}: {why}",
        hint="restore another backup: nilometer backup --list; nilometer check says what is lost",
    )
