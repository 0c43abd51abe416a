"""The history of typed statements, kept for the next time, except those that contain a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from nilometer.model.secrets import holds_secret

HISTORY_VARIABLE: Final = "NILOMETER_HISTORY"
_MOST_BYTES: Final = 1 << 20
_LINES: Final = re.compile(rb"\n(?=\n# )")


class SafeHistory(FileHistory):
    """Statements in a file that only this user can read."""

    def append_string(self, string: str) -> None:
        """Record a statement; one that contains a secret is forgotten when the shell ends."""
        if holds_secret(string):
            self._loaded_strings.insert(0, string)
        else:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        with suppress(OSError, UnicodeDecodeError):
            yield from super().load_history_strings()

    def store_string(self, string: str) -> None:
        with suppress(OSError):  # a full disk must not prevent a statement
            super().store_string(string)


def open_history() -> History:
    """This user's history; one for this run only if it cannot be stored, or is disabled."""
    wanted = os.environ.get(HISTORY_VARIABLE)
    if wanted == "":
        return InMemoryHistory()
    file = Path(wanted).expanduser() if wanted else _usual_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
        _shorten(file)
    except OSError:
        return InMemoryHistory()
    return SafeHistory(str(file))


def _usual_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "nilometer" / "history"


def _shorten(file: Path) -> None:
    """Keep only the newer half of a long history."""
    if file.stat().st_size <= _MOST_BYTES:
        return
    content = file.read_bytes()
    match = _LINES.search(content, len(content) // 2)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as out:
        out.write(b"" if match is None else content[match.end() :])
        out.flush()
        os.fsync(out.fileno())
    aside.replace(file)
