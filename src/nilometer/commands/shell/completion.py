"""Completions for what is typed: keywords, functions, names and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from nilometer.commands.shell.catalog import Names
from nilometer.commands.shell.commands import COMMANDS
from nilometer.commands.shell.split_input import MARK, split_text
from nilometer.commands.tables import clean
from nilometer.sql.expressions.scalars import quote_name

_WORD: Final = re.compile(r"[^\W\d]\w*$")
_NAMED: Final = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE|DESCRIBE|DESC|TABLE|STREAM|QUERY|VIEW)\s+[\w`]*$", re.IGNORECASE
)
_LISTED: Final = re.compile(r"\bFROM\s+[^()]*,\s*[\w`]*$", re.IGNORECASE)
_QUALIFIED: Final = re.compile(r"([^\W\d]\w*|`[^`]+`)\.(\w*)$")
_MOST: Final = 200
_FEW: Final = 20
"""Up to this many streams and tables, columns are offered before one is named."""

WORDS: Final = (
    *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET"),
    *("WITH", "AS", "AND", "OR", "NOT", "NULL", "IS NULL", "IS NOT NULL", "IN", "BETWEEN", "LIKE"),
    *("EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "JOIN", "LEFT JOIN", "RIGHT JOIN"),
    *("FULL JOIN", "ON", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "VALUES", "INTERVAL"),
    *("WINDOW", "DWINDOW", "RANGE", "ROWS", "SLIDE", "PARTITION BY", "UNBOUNDED", "OVER"),
    *("SECONDS", "MINUTES", "HOURS", "DAYS", "EMIT CHANGES", "EMIT CHANGES EVERY", "EMIT APPEND"),
    *("FROM START", "MATCH_RECOGNIZE", "EXPLAIN", "CREATE STREAM", "CREATE SENSOR TABLE"),
    *("CREATE TABLE", "CREATE QUERY", "CREATE VIEW", "CREATE DELIVERY", "INSERT INTO", "UPDATE"),
    *("SET", "DELETE FROM", "DROP STREAM", "DROP SENSOR TABLE", "DROP TABLE", "DROP QUERY"),
    *("DROP VIEW", "DROP DELIVERY", "START QUERY", "STOP QUERY", "ALTER QUERY", "DESCRIBE"),
    *("ALTER STREAM", "ALTER SENSOR TABLE", "ALTER TABLE", "ALTER VIEW", "RENAME TO"),
    *("SHOW STREAMS", "SHOW TABLES", "SHOW VIEWS", "SHOW QUERIES", "SHOW SENSORS", "SHOW READERS"),
    *("SHOW DELIVERIES", "SHOW DEAD LETTERS", "SHOW STREAM TYPES", "SHOW STORAGE"),
)


@cache
def function_names() -> tuple[str, ...]:
    """The functions that statements can call, in lower case."""
    from nilometer.mining.registry import MODULES  # noqa: PLC0415  some seconds, once
    from nilometer.sql.expressions.function_kinds import AGGREGATES, WINDOW_FUNCTIONS  # noqa: PLC0415
    from nilometer.sql.expressions.spark_text import safe_functions  # noqa: PLC0415

    every = {*AGGREGATES, *WINDOW_FUNCTIONS, *safe_functions(), *(one.lower() for one in MODULES)}
    return tuple(sorted(one for one in every if one.isidentifier()))


@dataclass
class StatementCompleter(Completer):
    """Completes the text before the cursor."""

    names: Names

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.lstrip().startswith(MARK):
            completions: Iterator[Completion] = self._of_command(text.lstrip())
        else:
            completions = self._of_statement(split_text(text)[1], document.text, event)
        for number, one in enumerate(completions):
            if number >= _MOST:
                return
            yield one

    def _of_command(self, text: str) -> Iterator[Completion]:
        name, space, word = text.removeprefix(MARK).partition(" ")
        if space:
            kinds = ("query",) if name == "follow" else None
            if name in ("d", "follow"):
                yield from self._relations(word.lstrip("`"), kinds)
            return
        for one, about in COMMANDS.items():
            if one.startswith(name):
                yield Completion(one, -len(name), display=f"\\{one}", display_meta=about.does)

    def _of_statement(self, text: str, whole: str, event: CompleteEvent) -> Iterator[Completion]:
        if (qualified := _QUALIFIED.search(text)) is not None:
            yield from self._columns(self._resolve(qualified[1], whole), qualified[2])
            return
        if _NAMED.search(text) or _LISTED.search(text):
            yield from self._relations(re.split(r"[\s,]", text)[-1].lstrip("`"))
            if _NAMED.search(text):
                return
        match = _WORD.search(text)
        word = match[0] if match else ""
        if not word and not event.completion_requested:
            return
        for one in self._mentioned(whole) or [one.name for one in self.names.listed[:_FEW]]:
            yield from self._columns(one, word)
        if not word:
            return
        yield from _phrases(text)
        for one in function_names():
            if one.startswith(word.lower()):
                shown = one.upper() if word.isupper() and len(word) > 1 else one
                yield Completion(f"{shown}(", -len(word), display_meta="function")

    def _relations(self, word: str, kinds: tuple[str, ...] | None = None) -> Iterator[Completion]:
        for one in self.names.listed:
            if one.name.lower().startswith(word.lower()) and (kinds is None or one.kind in kinds):
                yield _name(one.name, word, one.kind)

    def _columns(self, relation: str, word: str) -> Iterator[Completion]:
        for one in self.names.columns(relation):
            if one.lower().startswith(word.lower()):
                yield _name(one, word, relation)

    def _mentioned(self, text: str) -> list[str]:
        """The streams and tables named in a text."""
        words = {one.lower() for one in re.findall(r"\w+", text)}
        return [one.name for one in self.names.listed if one.name.lower() in words]

    def _resolve(self, name: str, text: str) -> str:
        """The stream or table that a name or alias refers to."""
        known = {one.name.lower() for one in self.names.listed}
        plain = name.strip("`")
        if plain.lower() in known:
            return plain
        behind = rf"`?(?:\s*\[[^\]]*\])?\s+(?:AS\s+)?{re.escape(plain)}\b"
        for one in self.names.listed:
            if re.search(rf"\b{re.escape(one.name)}{behind}", text, re.IGNORECASE):
                return one.name
        return plain


def _phrases(text: str) -> Iterator[Completion]:
    """Keywords that continue the end of a text, which may end inside a phrase."""
    words = text.split()
    for size in (3, 2, 1):
        typed = " ".join(words[-size:])
        phrases = [one for one in WORDS if one.startswith(typed.upper()) and one != typed.upper()]
        if phrases and len(words) >= size and text.endswith(typed):
            for one in phrases:
                yield Completion(one.lower() if typed.islower() else one, -len(typed))
            return


def _name(name: str, word: str, about: str) -> Completion:
    plain = name.isidentifier() and name.isascii()
    text = name if plain else quote_name(name)
    return Completion(text, -len(word), display=clean(name), display_meta=clean(about))
