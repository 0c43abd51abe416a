"""Shows text that is longer than the screen in a pager, only on a terminal."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rich.console import Console

PAGER_VARIABLES: Final = ("NILOMETER_PAGER", "PAGER")
_LESS: Final = "-FRSX"
"""Exit if all fits on one screen, colours, no wrapped lines, and keep what was shown."""


@dataclass(frozen=True)
class Paged:
    """Shows what is drawn on a console, in a pager if it is long."""

    console: Console
    is_wanted: bool = True

    def show(self, draw: Callable[[Console], None]) -> None:
        """Show what `draw` prints on the given console."""
        command = _command() if self.is_wanted and self.console.is_terminal else None
        if command is None:
            draw(self.console)
            return
        text = io.StringIO()
        draw(
            Console(
                file=text,
                force_terminal=True,
                width=self.console.width,
                height=self.console.height,
                no_color=self.console.no_color,
                highlight=False,
                markup=False,
                emoji=False,
            )
        )
        drawn = text.getvalue()
        if drawn.count("\n") < self.console.height or not _page(command, drawn):
            self.console.file.write(drawn)
            self.console.file.flush()


def _command() -> list[str] | None:
    """The pager; None if there is none, or it is disabled."""
    for variable in PAGER_VARIABLES:
        if variable in os.environ:
            try:
                return shlex.split(os.environ[variable]) or None
            except ValueError:
                return None
    less = shutil.which("less")
    return None if less is None else [less]


def _page(command: list[str], text: str) -> bool:
    """Whether the pager has shown the text; meanwhile only the pager receives Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        environment = {**os.environ, "LESS": os.environ.get("LESS", _LESS)}
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        try:
            pager.communicate(text.encode())
        except BrokenPipeError:
            pager.wait()
        return True
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
