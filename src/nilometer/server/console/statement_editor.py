"""The editor of statements: checks what is written, and marks where it is wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import background_tasks, ui

from nilometer.errors import NilometerError, Place, SqlError
from nilometer.mining.registry import MODULES
from nilometer.server.console.access import Console
from nilometer.server.console.frame import static_address
from nilometer.server.console.highlighted_sql import keywords

_CHECK_SECONDS: Final = 1.2
"""Seconds without typing before the text is checked,"""
_UNFINISHED_SECONDS: Final = 6.0
"""and before it is checked if its only error is that it is unfinished."""
_NO_FROM: Final = re.compile(r"\bSELECT\b(?!.*\bFROM\b)", re.IGNORECASE | re.DOTALL)
"""A text that does not yet say where its columns come from."""
_FUNCTIONS: Final = (
    "abs",
    "avg",
    "ceil",
    "coalesce",
    "concat",
    "count",
    "floor",
    "greatest",
    "least",
    "length",
    "lower",
    "max",
    "median",
    "min",
    "percentile",
    "round",
    "stddev",
    "sum",
    "upper",
    "variance",
)
_WORDS: Final = (
    "WINDOW",
    "DWINDOW",
    "RANGE",
    "ROWS",
    "PARTITION BY",
    "SECONDS",
    "MINUTES",
    "EMIT CHANGES",
    "EMIT CHANGES EVERY",
    "EXPLAIN SELECT",
    "CREATE STREAM",
    "CREATE SENSOR TABLE",
    "CREATE QUERY",
    "CREATE VIEW",
    "CREATE OR REPLACE QUERY",
    "CREATE OR REPLACE VIEW",
    "ALTER STREAM",
    "ALTER SENSOR TABLE",
    "ALTER TABLE",
    "ALTER VIEW",
    "ALTER QUERY",
    "ADD COLUMN",
    "DROP COLUMN",
    "RENAME COLUMN",
    "RENAME TO",
    "SHOW STREAMS",
    "SHOW SENSORS",
    "SHOW QUERIES",
    "FROM START",
)


class StatementEditor:
    """A text, and what is wrong with it."""

    def __init__(self, console: Console, run: Callable[[], Awaitable[None]]) -> None:
        self._service = console.service
        self._visitor = console.visitor()
        self._checking: asyncio.Task[Any] | None = None
        with ui.element("div").classes("nm-editor nm-sql"):
            self._code = ui.codemirror(
                "",
                theme="githubLight",
                indent="  ",
                line_wrapping=True,
                keymap={"Mod-Enter": run},
                on_change=self._check_soon,
            )
        self._problem = ui.element("div").classes("nm-problem").props("role=status id=problem")
        self._problem.visible = False
        ui.context.client.on_connect(self._install)

    @property
    def text(self) -> str:
        """The text without surrounding spaces and a final semicolon."""
        return (self._code.value or "").strip().rstrip(";").rstrip()

    def write(self, text: str) -> None:
        """Replace the text."""
        self._code.value = text
        self._check_soon()
        self._call("focus")

    async def refresh_names(self) -> None:
        """Load the current streams, tables and columns."""
        self._call("know", await self._service.relations())

    def show_problem(self, error: NilometerError | None) -> None:
        """Mark where an error is and show it; None: all is well."""
        self._problem.clear()
        self._problem.visible = error is not None
        if error is None:
            self._call("unmark")
            return
        place = error.place if isinstance(error, SqlError) else None
        with self._problem:
            _tell(error, place)
        if place is not None:
            self._mark(place, error.message)

    def tell_refusal(self, error: NilometerError) -> None:
        """Show why the text was not run; a check that finds it correct comes too late."""
        self._stop_checking()
        self.show_problem(error)

    def _mark(self, place: Place, message: str) -> None:
        whole = self._code.value or ""
        moved = max(0, whole.find(place.sql))
        self._call("mark", whole, moved + place.start, moved + place.end, message)

    def _stop_checking(self) -> None:
        if self._checking is not None:
            self._checking.cancel()

    def _check_soon(self) -> None:
        """Typing: old errors are no longer shown, new ones not yet."""
        self._stop_checking()
        if self._problem.visible:
            self.show_problem(None)
        self._checking = background_tasks.create(self._check())

    async def _check(self) -> None:
        await asyncio.sleep(_CHECK_SECONDS)
        text = self.text
        problem = await self._problem_of(text) if text else None
        if problem is not None and is_unfinished(problem, text):
            await asyncio.sleep(_UNFINISHED_SECONDS - _CHECK_SECONDS)
        if text == self.text and not self._code.is_deleted:
            self.show_problem(problem)

    async def _problem_of(self, text: str) -> NilometerError | None:
        """What is wrong with the text; of several statements, only their syntax is checked.

        What one of them names may be created by an earlier one.
        """
        try:
            parts = await self._service.split(text)
        except NilometerError as error:
            return error
        return None if len(parts) > 1 else await self._service.check(text, self._visitor.asker)

    async def _install(self) -> None:
        options = {
            "label": "SQL statement. Escape, then Tab leaves the editor",
            "help": "editor-help",
            "relations": await self._service.relations(),
            "functions": (*_FUNCTIONS, *MODULES),
            "words": _WORDS,
            "keywords": keywords(),
        }
        self._call("install", options)

    def _call(self, name: str, *values: object) -> None:
        """Call a function of our module in the browser, with the editor as its first argument."""
        arguments = ", ".join(json.dumps(one) for one in (self._code.id, *values))
        module = json.dumps(static_address("editor.js"))
        self._code.client.run_javascript(f"import({module}).then((m) => m.{name}({arguments}))")


def is_unfinished(error: NilometerError, text: str) -> bool:
    """Whether the user may still be typing: the error is at the end, or there is no FROM yet."""
    place = error.place if isinstance(error, SqlError) else None
    if place is None:
        return False
    return place.end >= len(text.rstrip()) or _NO_FROM.search(text) is not None


def _tell(error: NilometerError, place: Place | None) -> None:
    where = "" if place is None else f"line {place.line}, column {place.column}: "
    ui.label(f"{where}{error.message}").classes("nm-what")
    if error.detail:
        ui.label(error.detail).classes("nm-small nm-detail")
    if error.hint:
        ui.label(f"Hint: {error.hint}").classes("nm-small nm-detail")
