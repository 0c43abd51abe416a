"""Uvicorn's server, which stops in order however often it is told to stop."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn

from nilometer.model.events import event

_LOG: Final = logging.getLogger("nilometer.server")


class OrderlyServer(uvicorn.Server):
    """Calls `stopping` when a signal ends it; further signals do not cut its clients short."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._is_stopping = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal; another one may come at any line of this."""
        if self._is_stopping or self.should_exit:
            return
        self._is_stopping = True
        self._stopping()
        name = signal.Signals(sig).name
        _LOG.info("the server stops: %s", name, extra=event("stopping", signal=name))
        super().handle_exit(sig, frame)
