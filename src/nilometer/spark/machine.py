"""The resources of this machine, on any system."""

from __future__ import annotations

import os
from typing import Final

_UNKNOWN_MEMORY: Final = 8 << 30


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """The bytes of memory; where that is unknown, a common amount."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN_MEMORY
    return size if size > 0 else _UNKNOWN_MEMORY
