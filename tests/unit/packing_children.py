"""A process that packs the segments of a log, and ends at once before one of its steps."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from nilometer.log import local_storage
from nilometer.log.writer import LogWriter
from tests.unit.log_samples import LAYOUT, OPTIONS_TO_PACK

ENDED = 9


def pack_until(log: str, step: int) -> None:
    """Pack everything; end as if killed before the step of this number that reaches the disk.

    A write that is cut short leaves half of what was to be written.
    """
    steps = 0

    def counted(real: Callable[..., Any], is_write: bool = False) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            nonlocal steps
            if steps == step:
                if is_write:
                    real(given[0], [bytes(given[1][0])[: len(given[1][0]) // 2]], given[2])
                os._exit(ENDED)
            steps += 1
            return real(*given, **named)

        return called

    writer = LogWriter.open(log, LAYOUT, OPTIONS_TO_PACK)
    os.fsync = counted(os.fsync)
    os.pwritev = counted(os.pwritev, is_write=True)
    local_storage.Path.replace = counted(local_storage.Path.replace)  # type: ignore[method-assign]
    local_storage.Path.unlink = counted(local_storage.Path.unlink)  # type: ignore[method-assign]
    while writer.pack():
        pass
    os._exit(0)
