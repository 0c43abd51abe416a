"""One line on a terminal that shows what is being done, if it takes longer than two seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.status import Status

_PATIENCE: Final = 2.0


class Progress:
    """A line on standard error; nothing if that is not a terminal.

    >>> with Progress(Console(stderr=True, force_terminal=False)) as progress:
    ...     progress.say("Starting Spark")
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._status: Status | None = None
        self._lock = threading.RLock()
        self._timer = threading.Timer(_PATIENCE, self._begin)
        self._timer.daemon = True
        self._text = ""
        self._open = True

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Show nothing more."""
        self._timer.cancel()
        with self._lock:
            self._open = False
            if self._status is not None:
                self._status.stop()

    def say(self, text: str) -> None:
        """Show what is being done now."""
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(self._line())

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the line while something else is written to the terminal."""
        with self._lock:
            if self._status is not None:
                self._status.stop()
            try:
                yield
            finally:
                if self._status is not None and self._open:
                    self._status.start()

    def _begin(self) -> None:
        from rich.status import Status  # noqa: PLC0415  most commands are done before it is shown

        with self._lock:
            if self._open:
                self._status = Status(self._line(), console=self.console)
                self._status.start()

    def _line(self) -> Text:
        line = Text(self._text, no_wrap=True, overflow="ellipsis")
        line.truncate(max(10, self.console.width - 4), overflow="ellipsis")
        return line
