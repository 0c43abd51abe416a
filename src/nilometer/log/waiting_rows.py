"""The rows that wait in a write-ahead, told without opening it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nilometer.log.local_storage import LocalStorage
from nilometer.log.published import read_head, read_layout
from nilometer.log.registrations import find_reader

SHIPPING: Final = "store"
"""The reader of a write-ahead, which holds what is not in the store."""


def waiting_in(folder: Path) -> tuple[int, str | None]:
    """How many rows wait in a write-ahead at most, and the id of their log; None: there is none."""
    storage = LocalStorage(folder)
    if read_layout(storage) is None or (reader := find_reader(folder, SHIPPING)) is None:
        return 0, None
    head = read_head(storage)
    rows = 0 if head is None else max(0, head.end.row - reader.position.row)
    return rows, str(reader.about["log"])
