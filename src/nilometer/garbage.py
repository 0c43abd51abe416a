"""How often cyclic garbage is collected: seldom while a command loads, as usual once it runs.

What is imported stays, so to look through it again and again only takes time. Collection is never
off: a process that stays would grow for as long as it runs.
"""

from __future__ import annotations

import gc
from typing import Final

_SELDOM: Final = (200_000, 50, 100)
_USUAL: Final = (700, 10, 10)


def collect_seldom() -> None:
    """While modules are loaded."""
    gc.set_threshold(*_SELDOM)


def collect_as_usual() -> None:
    """From now on; what was loaded is no garbage, and is not looked at any more."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
