"""The checksum of a catalog's file while nobody has it open: SQLite keeps none."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path

from nilometer.log.sealed import seal, unseal


def note_sum(file: Path) -> None:
    """Store the checksum of a catalog that was closed, unless others have it open."""
    with suppress(OSError):  # a full disk: there is no checksum until the next time
        if not _is_in_use(file) and file.exists():
            content = seal(json.dumps({"sha256": _digest(file)}).encode())
            aside = sum_file(file).with_name(f".{file.name}.sum")
            aside.write_bytes(content)
            aside.replace(sum_file(file))


def forget_sum(file: Path) -> None:
    """Remove the checksum: the catalog may change from now on."""
    with suppress(OSError):
        sum_file(file).unlink(missing_ok=True)


def has_other_sum(file: Path) -> bool:
    """Whether a catalog has changed since it was closed; ValueError: the checksum is damaged."""
    try:
        stored = json.loads(unseal(sum_file(file).read_bytes()))
    except FileNotFoundError:
        return False
    return not _is_in_use(file) and str(stored["sha256"]) != _digest(file)


def sum_file(file: Path) -> Path:
    """The path of the checksum."""
    return file.with_name(f"{file.name}.sum")


def _is_in_use(file: Path) -> bool:
    """Whether there are changes that are not in the file yet."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()
