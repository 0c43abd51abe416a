"""Logs statements: those that changed something, took long, or were refused."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from nilometer.errors import (
    ForbiddenError,
    InternalError,
    LimitError,
    NilometerError,
    SqlSyntaxError,
    TimeLimitError,
    in_one_line,
)
from nilometer.model.events import event
from nilometer.model.secrets import HIDDEN
from nilometer.server.scopes import Asker
from nilometer.sql.ddl.nodes import Delete, Describe, ExplainQuery, Insert, Show, Update
from nilometer.sql.parse.query_text import tokenize
from nilometer.sql.statements import AnyStatement, Statement

_LOG: Final = logging.getLogger("nilometer.statements")
_SHOWN: Final = 200
_NOT_LOGGED: Final = (Statement, Show, Describe, ExplainQuery, Insert, Update, Delete)
"""Statements that change no declaration: there may be many of them."""
_READ: Final = 1_000
_HIDES: Final = re.compile(r"""['"]|--|/\*""")
_QUOTED: Final = re.compile(r"""(?<!\w)(?:'[^']*'?|"[^"]*"?)""")


class StatementLog:
    """Logs statements, without the values that they contain."""

    def __init__(self, slow_seconds: float) -> None:
        self._slow = slow_seconds

    @contextmanager
    def watch(self, text: str, asker: Asker) -> Iterator[None]:
        """Log if the work inside takes long, or is refused."""
        began = monotonic()
        try:
            yield
        except NilometerError as error:
            self._refused(text, asker, error)
            raise
        finally:
            self._tell_slow(text, asker, monotonic() - began)

    def ran(self, statement: AnyStatement, asker: Asker, message: str | None) -> None:
        """Log that a statement was run."""
        if not isinstance(statement, _NOT_LOGGED) and message is not None:
            extra = event("statement_run", asker.name, token=asker.name, outcome=message)
            _LOG.info("%s: %s", asker.name, message, extra=extra)

    def _refused(self, text: str, asker: Asker, error: NilometerError) -> None:
        why = _QUOTED.sub(f"'{HIDDEN}'", in_one_line(error))
        shown = without_values(text)
        about = {"kind": type(error).__name__, "reason": why, "statement": shown}
        extra = event("statement_refused", asker.name, token=asker.name, **about)
        words = "a statement of %s was refused: %s: %s"
        _LOG.log(_level(error), words, asker.name, why, shown, extra=extra)

    def _tell_slow(self, text: str, asker: Asker, seconds: float) -> None:
        if seconds >= self._slow:
            shown = without_values(text)
            extra = event(
                "slow_statement", asker.name, token=asker.name, seconds=seconds, statement=shown
            )
            _LOG.warning(
                "a statement of %s took %.1f s: %s", asker.name, seconds, shown, extra=extra
            )


def _level(error: NilometerError) -> int:
    if isinstance(error, InternalError):
        return logging.ERROR
    is_amiss = isinstance(error, ForbiddenError | LimitError | TimeLimitError)
    return logging.WARNING if is_amiss else logging.INFO


def without_values(text: str) -> str:
    """The start of a statement without its texts, which may be secrets, and its comments.

    >>> without_values("SELECT v FROM A -- mine\\nWHERE s = 'hunter2'")
    "SELECT v FROM A WHERE s = '…'"
    """
    text = text[:_READ]
    try:
        words = tokenize(text)
    except SqlSyntaxError:  # an unclosed or truncated quote: everything before the first is plain
        return _cut(_HIDES.split(text, maxsplit=1)[0])
    shown, end = "", 0
    for one in words:
        word = text[one.start : one.end + 1]
        shown += (" " if one.start > end and shown else "") + _without_value(word)
        end = one.end + 1
    return _cut(shown)


def _without_value(word: str) -> str:
    return f"'{HIDDEN}'" if "'" in word or '"' in word else word


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
