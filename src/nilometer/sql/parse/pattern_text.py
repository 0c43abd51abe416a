"""Parses the text between the parentheses of PATTERN: ``A B+ (C | D){2,3}? NOT E``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from nilometer.errors import Place, SqlError, SqlSyntaxError
from nilometer.model.row_patterns import (
    MOST_STEPS,
    Absent,
    Alternation,
    Pattern,
    Repeat,
    Sequence,
    Variable,
    count_steps,
    min_rows,
)

_WORDS: Final = re.compile(
    r"(?P<space>\s+|/\*.*?\*/|--[^\n]*)|(?P<exclusion>\{-|-\})"
    r"|(?P<count>\{\s*(?P<least>\d*)\s*(?P<comma>,)?\s*(?P<most>\d*)\s*\})"
    r"|(?P<name>[^\W\d]\w*|`[^`]+`)|(?P<sign>[()|*+?^$])|(?P<other>.)",
    re.DOTALL,
)
_MOST_NESTED: Final = 50
_LONGEST_NUMBER: Final = 6
_COUNTS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_HINT: Final = "write PATTERN (A B+ C), with | for alternatives, and *, +, ?, {2,5} after a part"


@dataclass
class PatternText:
    """A pattern in a statement, from one character to another."""

    sql: str
    start: int
    end: int

    def read(self) -> Pattern:
        """The parsed pattern; raises an error if it is missing or not supported."""
        self._words = [
            word
            for word in _WORDS.finditer(self.sql, self.start, self.end)
            if word.lastgroup != "space"
        ]
        self._next, self._nested = 0, 0
        pattern = self._alternation()
        if self._next < len(self._words):
            self._refuse("this is not allowed in a pattern")
        place = Place(self.sql, self.start, self.end)
        if min_rows(pattern) < 1:
            raise SqlError(
                "this pattern can match an empty sequence",
                place=place,
                detail="every row would start a match without rows",
                hint="start it with a required row: A B* instead of A* B*",
            )
        self._require_small(pattern, place)
        return pattern

    def _require_small(self, pattern: Pattern, place: Place) -> None:
        if count_steps(pattern) > MOST_STEPS:
            raise SqlError(
                f"this pattern has more than {MOST_STEPS:,} steps",
                place=place,
                detail="A{2,5} counts as five steps",
                hint="count with COUNT(A.*) in DEFINE, or bound the time with WITHIN: A* … WITHIN",
            )

    def _alternation(self) -> Pattern:
        parts = [self._sequence()]
        while self._sign("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def _sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while (part := self._part()) is not None:
            parts.append(part)
        if not parts:
            self._refuse("expected a variable here")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self) -> Pattern | None:
        part = self._primary()
        if part is not None and (counts := self._quantifier()) is not None:
            if isinstance(part, Absent):
                self._refuse("a NOT cannot be repeated", back=1)
            part = Repeat(part, *counts, greedy=not self._sign("?"))
            self._require_small(part, Place(self.sql, self.start, self.end))
        return part

    def _primary(self) -> Pattern | None:
        word = self._word
        if word is None:
            return None
        match word.lastgroup:
            case "name" if word.group().upper() == "NOT":
                return self._absent()
            case "name" if word.group().upper() == "PERMUTE":
                self._refuse("PERMUTE is not supported", hint="write out the orders: (A B | B A)")
            case "name":
                self._next += 1
                return Variable(variable_name(word.group()))
            case "exclusion":
                self._refuse(
                    "{- … -} is not supported",
                    hint="measure CLASSIFIER() AS c, and leave rows out with WHERE c <> 'X'",
                )
            case "sign" if word.group() in "^$":
                self._refuse(
                    f"{word.group()} is not supported: "
                    "a stream has no first or last row to anchor to",
                    hint="leave it out",
                )
            case "sign" if word.group() == "(":
                return self._group()
            case "sign" if word.group() in "|)":
                return None
        return self._refuse("expected a variable or ( here")

    def _group(self) -> Pattern:
        self._next += 1
        self._nested += 1
        if self._nested > _MOST_NESTED:
            self._refuse("the pattern is nested too deeply")
        pattern = self._alternation()
        if not self._sign(")"):
            self._refuse("expected ) in the pattern")
        self._nested -= 1
        return pattern

    def _absent(self) -> Absent:
        self._next += 1
        word = self._word
        if word is None or word.lastgroup != "name":
            self._refuse("expected a variable after NOT")
        assert word is not None
        self._next += 1
        if self._next < len(self._words) or self._nested:
            self._refuse(
                "NOT is only allowed before the last variable",
                back=2,
                detail="it requires that no such row arrives before the time of WITHIN is over",
                hint="for rows in between write A X* B, and DEFINE X AS NOT (…)",
            )
        return Absent(variable_name(word.group()))

    def _quantifier(self) -> tuple[int, int | None] | None:
        word = self._word
        if word is None:
            return None
        if word.lastgroup == "sign" and word.group() in _COUNTS:
            self._next += 1
            return _COUNTS[word.group()]
        if word.lastgroup != "count":
            return None
        least, most = word.group("least"), word.group("most")
        if max(len(least), len(most)) > _LONGEST_NUMBER or not (least or most):
            self._refuse("expected a small repetition count", hint="write {2,5}, {2,} or {,5}")
        self._next += 1
        low = int(least or 0)
        high = int(most) if most else None if word.group("comma") else low
        if high is not None and (high < low or high == 0):
            self._refuse(
                "expected the smaller number first, and a second number above zero",
                back=1,
                hint="write {2,5}",
            )
        return low, high

    @property
    def _word(self) -> re.Match[str] | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _sign(self, sign: str) -> bool:
        is_next = self._word is not None and self._word.group() == sign
        self._next += is_next
        return is_next

    def _refuse(
        self, message: str, back: int = 0, hint: str = _HINT, detail: str | None = None
    ) -> NoReturn:
        at = self._next - back
        word = self._words[at] if at < len(self._words) else None
        start, end = (self.end, self.end + 1) if word is None else word.span()
        raise SqlSyntaxError(message, place=Place(self.sql, start, end), detail=detail, hint=hint)


def variable_name(written: str) -> str:
    """The name of a variable, in upper case unless it is quoted."""
    return written[1:-1] if written.startswith("`") else written.upper()
