"""Offsets: where in the results of a query a client is, as a text that it keeps and gives back.

3f2a9c1e-0-1024-0-170-5be01c77   a place in the log with this id: Position, and a check
…~1767225600000000               rows with a `_time` before this instant were sent already
….25                             so were the first 25 rows that would follow
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from typing import Final, Self

from nilometer.errors import InputError, ResultsGoneError
from nilometer.log.position import Position

_ID: Final = 8
_FORM: Final = re.compile(
    r"(?P<log>[0-9a-f]{8})-(?P<place>\d{1,18}-\d{1,18}-\d{1,18}-\d{1,18})-(?P<check>[0-9a-f]{8})"
    r"(?:~(?P<sent_before>-?\d{1,18}))?(?:\.(?P<taken>\d{1,6}))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Offset:
    """A place in the results of a query; its text is opaque to those who keep it."""

    log: str
    """The first digits of the log's id."""
    position: Position
    check: str
    """Nobody but the server can make it: other texts are refused, not looked for in files."""
    sent_before: int | None = None
    """Rows with a time before this instant (microseconds) were sent already."""
    taken: int = 0
    """So were this many rows of those that follow."""

    @classmethod
    def at(
        cls, log_id: str, position: Position, sent_before: int | None = None, taken: int = 0
    ) -> Self:
        return cls(log_id[:_ID], position, _check(log_id, position), sent_before, taken)

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises InputError if this cannot be an offset."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise _unreadable(text)
        sent_before, taken = match["sent_before"], match["taken"]
        return cls(
            match["log"],
            Position(*map(int, match["place"].split("-"))),
            match["check"],
            None if sent_before is None else int(sent_before),
            int(taken or 0),
        )

    def require(self, log_id: str) -> Self:
        """This offset, if it is one of this log."""
        if self.log != log_id[:_ID]:
            raise ResultsGoneError(
                "this offset belongs to another query",
                detail="the query was replaced, or dropped and recreated",
                hint="start from the beginning: leave the offset out",
            )
        if self.check != _check(log_id, self.position):
            raise _unreadable(str(self))
        return self

    def after(self, rows: int) -> Self:
        """The offset after so many of the rows that follow this one."""
        return replace(self, taken=self.taken + rows)

    def __str__(self) -> str:
        at = self.position
        sent_before = "" if self.sent_before is None else f"~{self.sent_before}"
        taken = f".{self.taken}" if self.taken else ""
        return f"{self.log}-{_fields(at)}-{self.check}{sent_before}{taken}"


def _fields(at: Position) -> str:
    return f"{at.segment}-{at.byte}-{at.skip}-{at.row}"


def _check(log_id: str, position: Position) -> str:
    return f"{zlib.crc32(f'{log_id} {_fields(position)}'.encode()):08x}"


def _unreadable(text: str) -> InputError:
    return InputError(
        "this is not an offset",
        detail=f"got {text[:80]!r}",
        hint="give one that came with results, or leave it out",
    )
