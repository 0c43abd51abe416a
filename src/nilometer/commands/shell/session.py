"""A running shell: runs statements and its own commands, from any input."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from nilometer.commands.answers import in_shown_order
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.follow_results import Followed, Screen
from nilometer.commands.options import Follow, Format, Output
from nilometer.commands.parameter_option import read_value
from nilometer.commands.progress import Progress
from nilometer.commands.read_text import read_file
from nilometer.commands.shell.catalog import as_table, list_all, state_of
from nilometer.commands.shell.commands import Command, help_text, read_command, read_switch
from nilometer.commands.shell.display import Display, new_console, read_form
from nilometer.commands.shell.interrupts import GivenUpError, run_until_interrupted
from nilometer.commands.shell.place import Place, StatementResult
from nilometer.commands.shell.split_input import Piece, read_pieces
from nilometer.commands.statements import OneStatement, split_statements
from nilometer.commands.tables import safe_text
from nilometer.errors import GoesOnError, InputError, NilometerError, SqlError
from nilometer.errors import Place as PlaceInText
from nilometer.sql.expressions.scalars import quote_name

_DEEPEST: Final = 10
"""How deeply files may include each other."""
_WATCH_SECONDS: Final = 2.0


class LeaveError(Exception):
    r"""\q: the rest is not run."""


@dataclass
class Shell:
    """Runs what is typed or read; `run` returns whether all succeeded."""

    place: Place
    display: Display = field(default_factory=Display)
    errors: Console = field(default_factory=lambda: new_console(stderr=True))
    is_interactive: bool = False
    """Whether a person sees the results, and can stop them."""
    keep_going: bool = False
    parameters: dict[str, object] = field(default_factory=dict)
    edit: Callable[[str, Path | None], None] | None = None
    """Opens an editor; only with a terminal."""
    changed: Callable[[], None] = lambda: None
    """Called when names may have changed."""
    last: str = ""
    """The last statement that was run."""
    is_timed: bool = False
    _depth: int = 0

    def run(self, lines: Iterable[str], name: str | None = None) -> bool:
        """Run all statements and commands of a text, up to the first that fails.

        `name` is the name of their file, for errors.
        """
        is_well = True
        for piece in read_pieces(lines):
            try:
                self.run_piece(piece)
            except NilometerError as error:
                self.tell(error, piece, name)
                is_well = False
                if not self.keep_going:
                    break
            except KeyboardInterrupt:
                if not self.is_interactive:
                    raise
                self.tell(InputError("interrupted", hint="what was started may still complete"))
                return False
        return is_well

    def run_piece(self, piece: Piece) -> None:
        """Run one statement or command."""
        if piece.is_command:
            self._run_command(read_command(piece.text))
            return
        self.last = piece.text
        self._run_statements(piece.text)

    def tell(
        self, error: NilometerError, piece: Piece | None = None, name: str | None = None
    ) -> None:
        """Report an error and its position."""
        where = ""
        if piece is not None and name is not None:
            error, line = _placed(error, piece.line)
            where = f"{name}:{line}: "
        text = Text(where) + Text("error: ", style="red") + Text(safe_text(str(error)))
        self.errors.print(text, soft_wrap=True)

    def _run_statements(self, text: str) -> None:
        for statement in split_statements(text, self.parameters, may_be_unused=True):
            began = time.monotonic()
            self._run_one(statement)
            if self.is_timed:
                self.errors.print(f"time: {_duration_text(time.monotonic() - began)}", style="dim")
            if not statement.is_query:
                self.changed()

    def _run_one(self, statement: OneStatement) -> None:
        try:
            done = self._wait_for(lambda: self._answer(statement))
        except GoesOnError as error:
            if not self.is_interactive:
                error.hint = "\\follow NAME shows what comes of a query: CREATE QUERY name AS …"
                raise
            self._note("this query runs for as long as its streams do: Ctrl-C ends it")
            self._follow(lambda screen: self.place.follow_select(statement, screen))
            return
        self.display.show(done)
        if done.note is not None:
            self.errors.print(Text(safe_text(done.note)), style="dim", soft_wrap=True)

    def _answer(self, statement: OneStatement) -> StatementResult:
        if statement.is_explain and self.display.form is Format.TABLE:
            return StatementResult(self.place.explain(statement))
        done = self.place.run(statement)
        if done.answer is None or not statement.is_query:
            return done
        return StatementResult(done.message, in_shown_order(done.answer, statement), done.note)

    def _wait_for(self, work: Callable[[], StatementResult]) -> StatementResult:
        with Progress(self.errors) as progress:
            progress.say("Waiting for the answer – Ctrl-C cancels")
            try:
                return run_until_interrupted(work, self.place.cancel)
            except GivenUpError:
                raise KeyboardInterrupt from None

    def _follow(self, follow: Callable[[Screen], Followed]) -> None:
        display = self.display
        if display.path is not None and display.form is not Format.TABLE:
            raise InputError(
                f"followed results cannot be written to {display.path} as {display.form}",
                hint="\\f table; or nilometer sql --follow --format csv --output FILE",
            )
        with Progress(self.errors) as progress:
            output = Output(display.form, None, display.limit)
            followed = follow(Screen(output, Follow(), display.console, progress))
        self.errors.print(followed.summary(), style="dim")

    def _run_command(self, command: Command) -> None:
        match command.name:
            case "q":
                raise LeaveError
            case "?":
                self.display.say(help_text())
            case "d" | "ds" | "dt" | "dq" | "dv":
                self._describe(command)
            case "follow":
                self._follow_named(command)
            case "watch":
                self._watch(command)
            case "e":
                self._edit(command)
            case "i":
                self._include(command)
            case "set":
                self._set(command)
            case _:
                self._adjust(command)

    def _adjust(self, command: Command) -> None:
        """Change how answers look, and show the setting."""
        display, word = self.display, command.words[0] if command.words else None
        match command.name:
            case "x":
                display.is_expanded = read_switch(command, display.is_expanded)
                self._note(f"records instead of tables: {_on(display.is_expanded)}")
            case "timing":
                self.is_timed = read_switch(command, self.is_timed)
                self._note(f"timing: {_on(self.is_timed)}")
            case "f":
                display.form = display.form if word is None else read_form(word.lower())
                self._note(f"answers are written as {display.form}")
            case "limit":
                if word is not None:
                    display.limit = _whole_number(word, "\\limit 100")
                self._note(f"tables show {display.limit:,} rows")
            case "o":
                display.write_to(None if word is None else Path(word).expanduser())

    def _describe(self, command: Command) -> None:
        place = self.place
        if command.words:
            name = command.rest.strip("`\"'")
            (statement,) = split_statements(f"DESCRIBE {quote_name(name)}")
            done = self._wait_for(lambda: place.run(statement))
            doing = self._wait_for(lambda: StatementResult(state_of(place, name)))
            for line in (done.message, doing.message):
                if line:
                    self.display.say(line)
            self.display.show(done)
            return
        statements = {"ds": "STREAMS", "dt": "TABLES", "dq": "QUERIES", "dv": "VIEWS"}
        if command.name in statements:
            text = f"SHOW {statements[command.name]}"
            self.display.show(
                self._wait_for(lambda: StatementResult(answer=ArrowAnswer(place.look(text))))
            )
            return
        listed = self._wait_for(
            lambda: StatementResult(answer=ArrowAnswer(as_table(list_all(place))))
        )
        self.display.show(listed)

    def _follow_named(self, command: Command) -> None:
        if command.words:
            name = command.rest.strip("`\"'")
            self._follow(lambda screen: self.place.follow_named(name, screen))
            return
        statement = self._last_query("\\follow QUERY shows what comes of a query")
        self._follow(lambda screen: self.place.follow_select(statement, screen))

    def _watch(self, command: Command) -> None:
        seconds = _WATCH_SECONDS
        if command.words:
            seconds = _seconds(command.words[0])
        if not self.last:
            raise InputError("there is no statement yet to run again", hint="run one first")
        try:
            while True:
                self.errors.print(
                    f"{time.strftime('%H:%M:%S')}, every {seconds:g} s – Ctrl-C ends", style="dim"
                )
                self._run_statements(self.last)
                time.sleep(seconds)
        except KeyboardInterrupt:
            if not self.is_interactive:
                raise
            self.errors.print()

    def _last_query(self, hint: str) -> OneStatement:
        if self.last:
            (statement, *_) = split_statements(self.last, self.parameters, may_be_unused=True)
            if statement.is_query and not statement.is_explain:
                return statement
        raise InputError("the last statement was not a query", hint=hint)

    def _edit(self, command: Command) -> None:
        if self.edit is None:
            raise InputError("there is no terminal to edit in")
        path = Path(command.words[0]).expanduser() if command.words else None
        self.edit("" if path is not None else self.last, path)

    def _include(self, command: Command) -> None:
        if not command.words:
            raise InputError("\\i takes the name of a file", hint="write \\i queries.sql")
        if self._depth >= _DEEPEST:
            raise InputError(
                "files include each other recursively", detail=f"at {command.words[0]}"
            )
        self._depth += 1
        try:
            text = read_file(command.words[0])
            if not self.run(text.splitlines(keepends=True), command.words[0]):
                raise InputError(f"{command.words[0]} ran with errors")
        finally:
            self._depth -= 1

    def _set(self, command: Command) -> None:
        name, _, value = command.rest.partition(" ")
        if not name:
            for known, held in self.parameters.items():
                self.display.say(f":{known} = {held!r}")
            return
        name = name.removeprefix(":")
        if not name.isidentifier():
            raise InputError(
                "a parameter name may only contain letters, digits and underscores",
                detail=f"got {name!r}",
            )
        if value.strip():
            self.parameters[name] = read_value(value.strip())
        else:
            self.parameters.pop(name, None)

    def _note(self, text: str) -> None:
        """Show a setting; not if a program reads the answers."""
        if self.is_interactive:
            self.errors.print(text, style="dim", soft_wrap=True)


def _placed(error: NilometerError, line: int) -> tuple[NilometerError, int]:
    """The error of a statement that starts in a line of a file, with its position and line."""
    if not isinstance(error, SqlError) or error.place is None:
        return error, line
    place, before = error.place, "\n" * (line - 1)
    moved = PlaceInText(before + place.sql, place.start + line - 1, place.end + line - 1)
    placed = SqlError(error.message, place=moved, detail=error.detail, hint=error.hint)
    return placed, moved.line


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"


def _whole_number(text: str, example: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise InputError("expected a whole number", detail=f"got {text!r}", hint=f"write {example}")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.1 <= seconds <= 86_400:
        raise InputError("expected seconds", detail=f"got {text!r}", hint="write \\watch 5")
    return seconds


def _duration_text(seconds: float) -> str:
    """The duration of a statement.

    >>> _duration_text(0.0123), _duration_text(75.3)
    ('12.3 ms', '75.300 s')
    """
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.3f} s"
