"""The rows that wait in a write-ahead that is not open."""

from __future__ import annotations

import logging
from itertools import count
from pathlib import Path
from typing import Final

from nilometer.log.delete import delete_log
from nilometer.log.local_storage import LocalStorage
from nilometer.log.published import read_head, read_layout
from nilometer.log.registrations import find_reader

_LOG: Final = logging.getLogger("nilometer.storage")
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


def put_aside(folder: Path) -> None:
    """Make room for another write-ahead; rows that may not be in the store are kept beside it."""
    rows, _ = waiting_in(folder)
    if not rows:
        delete_log(folder)
        return
    names = (folder.with_name(f"{folder.name}.aside-{number}") for number in count(1))
    aside = next(one for one in names if not one.exists())
    folder.rename(aside)
    _LOG.warning(
        "%s is older than its copy in the store; %d rows that may not be in the store are in %s",
        folder,
        rows,
        aside,
    )
