"""Opens the write-ahead of a log, if it has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nilometer.errors import LogFullError
from nilometer.log.delete import delete_log
from nilometer.log.local_storage import LocalStorage
from nilometer.log.location import in_object_store
from nilometer.log.options import Durability, LogOptions
from nilometer.log.published import read_layout
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter


def open_ahead(
    folder: Path | None,
    store: LogWriter,
    location: str,
    options: LogOptions,
    clock: Callable[[], int],
    *,
    drops_oldest: bool = False,
    known_by: Callable[[bytes], bytes] = bytes,
) -> WriteAhead | None:
    """The write-ahead of a log, if its options want one; what waits in it is shipped first.

    One that is not wanted any more is deleted, once everything is in the store.
    """
    is_wanted = options.durability is Durability.DISK and in_object_store(location)
    if folder is None or (not is_wanted and read_layout(LocalStorage(folder)) is None):
        return None
    ahead = WriteAhead(folder, store, options, clock, drops_oldest=drops_oldest, known_by=known_by)
    try:
        try:
            ahead.ship()
        except LogFullError:  # its readers must catch up
            if not is_wanted:
                raise
    except BaseException:
        ahead.close()
        raise
    if is_wanted:
        return ahead
    ahead.close()
    delete_log(folder)
    return None
