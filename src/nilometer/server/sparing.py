"""Limits log events that somebody can cause as often as they like."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from nilometer.model.events import event, event_of, spared_by

WITHIN: Final = 60.0
MOST_OF_KIND: Final = 100
"""The maximum number of one event that is logged in a minute."""
MOST_OF_ONE: Final = 10
"""Of these, the maximum that is counted together, such as those of one address."""


@dataclass
class _Minute:
    """The events of one name in the current minute."""

    since: float
    logged: dict[str, int] = field(default_factory=dict)
    """By what they are counted; events not logged are not counted, so this stays small."""
    left_out: int = 0


class Sparing(logging.Handler):
    """Passes records on to other handlers, except too frequent ones, which are counted."""

    def __init__(
        self, handlers: Sequence[logging.Handler], ticks: Callable[[], float] = monotonic
    ) -> None:
        super().__init__()
        self.handlers = list(handlers)
        self._ticks = ticks
        self._minutes: dict[str, _Minute] = {}
        self._counting = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        key, name = spared_by(record), event_of(record)
        if key is None or name is None or self._may_pass(name, key):
            self._pass_on(record)

    def tell_rest(self, *, at_once: bool = False) -> None:
        """Report how many were left out in past minutes; `at_once`: in all."""
        with self._counting:
            now = self._ticks()
            over = {
                name: one
                for name, one in self._minutes.items()
                if at_once or now - one.since >= WITHIN
            }
            for name in over:
                del self._minutes[name]
        for name, one in over.items():
            if one.left_out:
                self._pass_on(_of_the_rest(name, one.left_out))

    def _may_pass(self, name: str, key: str) -> bool:
        self.tell_rest()
        with self._counting:
            minute = self._minutes.setdefault(name, _Minute(self._ticks()))
            before = minute.logged.get(key, 0)
            if before >= MOST_OF_ONE or sum(minute.logged.values()) >= MOST_OF_KIND:
                minute.left_out += 1
                return False
            minute.logged[key] = before + 1
            return True

    def _pass_on(self, record: logging.LogRecord) -> None:
        for one in self.handlers:
            if record.levelno >= one.level:
                one.handle(record)


def _of_the_rest(name: str, count: int) -> logging.LogRecord:
    words = name.replace("_", " ")
    extra = event("left_out", left_out=name, count=count)
    return logging.getLogger("nilometer.server").makeRecord(
        "nilometer.server",
        logging.WARNING,
        __file__,
        0,
        "%s: %d more within a minute",
        (words, count),
        None,
        extra=extra,
    )
