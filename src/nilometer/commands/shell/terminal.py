"""A shell on a terminal: input with colours, completion and history."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition, completion_is_selected, is_searching
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from nilometer.commands.shell.catalog import Listed, Names, counted_kinds
from nilometer.commands.shell.completion import StatementCompleter
from nilometer.commands.shell.highlighting import STYLES, StatementLexer
from nilometer.commands.shell.session import LeaveError, Shell
from nilometer.commands.shell.split_input import is_complete
from nilometer.errors import InputError
from nilometer.version import VERSION

PROMPT: Final = "nilometer> "
_MORE: Final = "... "
_EMPTY: Final = (
    "There is nothing here yet. To try it:\n"
    "  CREATE STREAM Readings (room STRING, heat DOUBLE) FROM synthetic;\n"
    "  SELECT room, AVG(heat) AS heat FROM Readings [RANGE 1 MINUTE] GROUP BY room;"
)


@dataclass
class Terminal:
    """Reads statements and runs them until the user leaves."""

    shell: Shell
    history: History
    keyboard: Input | None = None
    """The keyboard; None: the terminal of this process."""
    screen: Output | None = None
    _names: Names = field(init=False)
    _draft: str = field(default="", init=False)
    """The text in the prompt before anything is typed."""

    def __post_init__(self) -> None:
        self._names = Names(self.shell.place)
        self.shell.changed = self._names.refresh
        self.shell.edit = self._edit

    def run(self, listed: list[Listed]) -> None:
        """Greet, and continue until Ctrl-D or \\q; `listed` are the contents of the database."""
        self._names.listed = listed
        self.shell.display.say(greeting(self.shell.place.title, listed))
        session = self._session()
        while True:
            draft, self._draft = self._draft, ""
            try:
                text = session.prompt(PROMPT, default=draft)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            try:
                self.shell.run(text.splitlines(keepends=True))
            except LeaveError:
                return

    def _session(self) -> PromptSession[str]:
        return PromptSession(
            history=self.history,
            lexer=StatementLexer(),
            completer=ThreadedCompleter(StatementCompleter(self._names)),
            complete_while_typing=False,
            multiline=True,
            prompt_continuation=_continued,
            key_bindings=_keys(),
            style=Style.from_dict(STYLES),
            enable_history_search=False,
            input=self.keyboard,
            output=self.screen,
        )

    def _edit(self, text: str, path: Path | None) -> None:
        """Open an editor; its text is put into the prompt, to be run or changed."""
        self._draft = edit_text(text, path)


def greeting(title: str, listed: list[Listed]) -> str:
    """The greeting."""
    lines = [f"Nilometer {VERSION}, {title}"]
    lines.append(f"{counted_kinds(listed)} (\\d lists them)" if listed else _EMPTY)
    lines.append("Statements end with ;  Help: \\?  Leave: \\q or Ctrl-D\n")
    return "\n".join(lines)


def _continued(width: int, _: int, is_folded: int) -> str:
    """The prompt of the other lines of a statement; empty where one line is wrapped."""
    return "" if is_folded else _MORE.rjust(width)


def _keys() -> KeyBindings:
    keys = KeyBindings()
    can_be_run = Condition(lambda: is_complete(get_app().current_buffer.document.text))

    @keys.add("enter", filter=can_be_run & ~completion_is_selected & ~is_searching)
    def _run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("enter", filter=completion_is_selected)
    def _choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def edit_text(text: str, path: Path | None) -> str:
    """The text, or the file, after editing."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="nilometer-") as folder:
        file = path or Path(folder) / "statement.sql"
        if path is None:
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8")
        try:
            ended = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
            if ended != 0:
                raise InputError(f"{command} ended with {ended}", hint="nothing was changed")
            return file.read_text(encoding="utf-8").rstrip("\n")
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot edit with {command}", detail=str(error), hint="set EDITOR to an editor"
            ) from None
