r"""The shell's own commands: \d, \timing, \watch … and their help."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from nilometer.errors import InputError
from nilometer.model.names import nearest


@dataclass(frozen=True)
class Help:
    """What a command accepts, and what it does."""

    takes: str
    does: str


COMMANDS: Final = {
    "d": Help("[NAME]", "all streams, tables, views and queries; or one: its columns and text"),
    "ds": Help("", "streams and their status"),
    "dt": Help("", "tables"),
    "dq": Help("", "queries and their status"),
    "dv": Help("", "views"),
    "follow": Help("[QUERY]", "show the results of a query as they come, until Ctrl-C"),
    "watch": Help("[SECONDS]", "run the last statement again and again, until Ctrl-C"),
    "e": Help("[FILE]", "edit the last statement, or a file, in your editor ($EDITOR)"),
    "i": Help("FILE", "run the statements of a file"),
    "o": Help("[FILE]", "write answers to a file; without one, to the screen again"),
    "x": Help("[on|off]", "one line for each column, instead of one for each row"),
    "f": Help("[table|csv|jsonl]", "how answers are written"),
    "limit": Help("[ROWS]", "how many rows of an answer a table shows"),
    "timing": Help("[on|off]", "say how long each statement took"),
    "set": Help(
        "[NAME [VALUE]]", "set the value of :NAME in statements, show all values, or unset one"
    ),
    "?": Help("", "this help"),
    "q": Help("", "leave (as does Ctrl-D)"),
}


_WHOLE: Final = ("d", "follow", "set")
"""Commands that take the whole rest of the line."""


@dataclass(frozen=True)
class Command:
    """A command that was typed, and the words after it."""

    name: str
    words: tuple[str, ...]
    rest: str
    """Everything after the name, as typed."""


def read_command(text: str) -> Command:
    r"""A command of the shell.

    >>> read_command("\\i 'my file.sql'").words
    ('my file.sql',)
    """
    name, _, rest = text.strip().removeprefix("\\").partition(" ")
    rest = rest.strip()
    name, rest = name.rstrip(";") or name, rest.rstrip(";").rstrip()
    chosen = {"h": "?", "help": "?", "quit": "q", "exit": "q"}.get(name, name)
    if chosen not in COMMANDS:
        near = nearest(name, list(COMMANDS))
        raise InputError(f"there is no command \\{name}", hint=near or "\\? lists them")
    try:
        words = tuple(shlex.split(rest))
    except ValueError:
        words = (rest,)
    if not COMMANDS[chosen].takes and words:
        raise InputError(f"\\{chosen} takes no argument", detail=f"got {rest!r}")
    if len(words) > 1 and chosen not in _WHOLE:
        hint = f"write \\{chosen} {COMMANDS[chosen].takes}"
        raise InputError(f"\\{chosen} takes one word", detail=f"got {rest!r}", hint=hint)
    return Command(chosen, words, rest)


def read_switch(command: Command, now: bool) -> bool:
    """On, off, or (without a word) toggled."""
    if not command.words:
        return not now
    word = command.words[0].lower()
    if word not in ("on", "off"):
        raise InputError(f"\\{command.name} is on or off", detail=f"got {command.words[0]!r}")
    return word == "on"


def help_text() -> str:
    """All commands, one per line, and how statements end."""
    shown = {f"\\{name} {one.takes}".rstrip(): one.does for name, one in COMMANDS.items()}
    wide = max(map(len, shown))
    lines = [f"  {name.ljust(wide)}  {does}" for name, does in shown.items()]
    keys = (
        "Statements end with ; and may have several lines. A SELECT over windows of streams goes\n"
        "on: it is followed until Ctrl-C. Tab completes names and words, ↑ and Ctrl-R find\n"
        "earlier statements, Ctrl-C cancels what is typed or run."
    )
    return "\n".join([*lines, "", keys])
