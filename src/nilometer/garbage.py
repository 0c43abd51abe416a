"""When cyclic garbage is collected: rarely while a command loads, as usual once it runs.

Imported objects stay, so scanning them again and again only takes time. Collection is never
off: a process that keeps running would grow forever.
"""

from __future__ import annotations

import gc
from typing import Final

_SELDOM: Final = (200_000, 50, 100)
_USUAL: Final = (700, 10, 10)


def collect_seldom() -> None:
    """Collect rarely, while modules are loaded."""
    gc.set_threshold(*_SELDOM)


def collect_as_usual() -> None:
    """Collect as usual from now on; objects loaded so far are no longer scanned."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
