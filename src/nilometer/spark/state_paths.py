"""Updates the paths in Spark's state metadata after a checkpoint was moved.

Spark stores the absolute paths of the files that describe an operator's state. These are inside
the checkpoint, so its location determines theirs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_PATHS: Final = "stateSchemaFilePaths"
_DEPTH: Final = 4
"""Below `state`: the operator, a folder of schemas, the store, and the file."""


def point_state_here(checkpoint: Path, address: str | None = None) -> int:
    """Make the state metadata of a checkpoint name its own files; returns how many changed.

    `address`: where executors find the checkpoint, if not by its path.

    Each file is replaced as a whole. One that cannot be read is left for Spark to refuse.
    """
    place = f"file:{checkpoint}" if address is None else address
    changed = 0
    for file in sorted(checkpoint.glob("state/*/_metadata/v*/*")):
        if not file.name.isdecimal():
            continue
        before = file.read_text()
        after = _pointing(before, place)
        if after != before:
            _replace(file, after)
            changed += 1
    return changed


def _pointing(text: str, place: str) -> str:
    """The metadata with paths in this checkpoint; a line of JSON follows one with the version."""
    version, mark, content = text.partition("\n")
    try:
        metadata: dict[str, Any] = json.loads(content)
        paths = [path for one in metadata["stateStoreInfo"] for path in one.get(_PATHS, ())]
        moved = [f"{place}/state/{'/'.join(path.split('/')[-_DEPTH:])}" for path in paths]
    except (ValueError, KeyError, TypeError, AttributeError):
        return text
    if moved == paths:
        return text
    paths_here: Iterator[str] = iter(moved)
    for one in metadata["stateStoreInfo"]:
        if _PATHS in one:
            one[_PATHS] = [next(paths_here) for _ in one[_PATHS]]
    return f"{version}{mark}{json.dumps(metadata, separators=(',', ':'), ensure_ascii=False)}"


def _replace(file: Path, text: str) -> None:
    """Replace a file, and remove the checksum of the old one."""
    aside = file.with_name(f".{file.name}.tmp")
    with aside.open("w") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    aside.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
