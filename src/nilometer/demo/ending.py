"""How a demo ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_like_ctrl_c() -> Iterator[None]:
    """Make a closed terminal, or `kill`, end the demo in order, without leaving its server."""
    ending = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)  # INT may have been ignored
    before = {one: signal.signal(one, signal.default_int_handler) for one in ending}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
