"""How many rows a log has lost early: dropped for lack of room, or by a power cut."""

from __future__ import annotations

from typing import Final

from nilometer.log.storage import Storage
from nilometer.log.stored_json import json_bytes, read_json

_FILE: Final = "dropped.json"


def read_dropped_rows(storage: Storage) -> int:
    content = read_json(storage, _FILE)
    return 0 if content is None else int(content["rows"])


def add_dropped_rows(storage: Storage, rows: int) -> None:
    """Count these rows, durably."""
    if rows:
        content = {"rows": read_dropped_rows(storage) + rows}
        storage.write(_FILE, [json_bytes(content)])
