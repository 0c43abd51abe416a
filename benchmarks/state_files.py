"""How many bytes of state files Spark reads when a query restarts."""

from __future__ import annotations

import json
import re
import zipfile
from collections import defaultdict
from pathlib import Path

_FILE = re.compile(r"^(\d+)(?:_[^.]*)?\.(delta|snapshot|changelog|zip)$")


def bytes_to_restart(checkpoint: Path) -> int:
    """For every store: the newest snapshot, if any, and the changes after it."""
    stores: dict[Path, list[Path]] = defaultdict(list)
    for file in (checkpoint / "state").rglob("*"):
        if file.is_file() and _FILE.match(file.name):
            stores[file.parent].append(file)
    return sum(_store_bytes(files) for files in stores.values())


def _store_bytes(files: list[Path]) -> int:
    versions = {file: _version(file) for file in files}
    snapshots = [f for f in files if f.suffix in (".snapshot", ".zip")]
    newest = max(snapshots, key=versions.__getitem__, default=None)
    after = -1 if newest is None else versions[newest]
    changes = [f for f in files if f not in snapshots and versions[f] > after]
    total = sum(file.stat().st_size for file in changes)
    return total + (0 if newest is None else _snapshot_bytes(newest))


def _version(file: Path) -> int:
    match = _FILE.match(file.name)
    assert match is not None
    return int(match[1])


def _snapshot_bytes(file: Path) -> int:
    size = file.stat().st_size
    if file.suffix != ".zip":
        return size
    with zipfile.ZipFile(file) as archive:
        name = next(n for n in archive.namelist() if n.endswith("metadata"))
        text = archive.read(name).decode()
    listed = json.loads(text[text.index("{") :])
    return size + sum(sst["sizeBytes"] for sst in listed.get("sstFiles", []))
