"""The clock that logs use unless they are given another."""

from __future__ import annotations

import time


def now_micros() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000
