"""How many rows a log has lost before their time: dropped for want of room, or by a power cut."""

from __future__ import annotations

import json
from typing import Final

from nilometer.log.storage import Storage

_FILE: Final = "dropped.json"


def read_dropped_rows(storage: Storage) -> int:
    try:
        return int(json.loads(storage.read(_FILE))["rows"])
    except FileNotFoundError:
        return 0


def add_dropped_rows(storage: Storage, rows: int) -> None:
    """Count these rows, durably."""
    if rows:
        content = {"rows": read_dropped_rows(storage) + rows}
        storage.write(_FILE, [json.dumps(content).encode()])
