"""Java's regular expressions, as far as RE2 gives them the same meaning.

Characters, classes, groups, alternatives, greedy and reluctant quantifiers, and ^ and $ at the
ends. What Java and RE2 read differently is rewritten: Java's dot does not match \\r, \\x85, \\u2028
and \\u2029, its \\s matches \\v, and its $ also matches before a final line break.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nilometer.errors import UnavailableError

_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_POINT: Final = f"[^{_LINE_ENDS}]"
_CLASSES: Final = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": r"\t\n\x0B\f\r ",
}
_CONTROLS: Final = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "e": r"\x1B", "a": r"\x07"}
_META: Final = frozenset("\\^$.|?*+()[]{}")
_MOST_REPEATS: Final = 1000
_MOST_LETTERS: Final = 1000


@dataclass(frozen=True)
class Regex:
    """A pattern as RE2 reads it."""

    text: str
    groups: int
    may_be_empty: bool
    has_end: bool
    """Whether it ends with $."""

    @property
    def for_search(self) -> str:
        """The pattern with its $."""
        ends = rf"(?:\r\n|[{_LINE_ENDS}])?\z" if self.has_end else ""
        return f"(?:{self.text}){ends}"

    @property
    def named(self) -> str:
        """The pattern with named groups: g0 is the whole match."""
        ends = self.for_search.removeprefix(f"(?:{self.text})")
        return f"(?P<g0>{_name_groups(self.text)}){ends}"


def _name_groups(text: str) -> str:
    parts, place, seen, in_class = [], 0, 0, False
    while place < len(text):
        letter = text[place]
        if letter == "\\":
            parts.append(text[place : place + 2])
            place += 2
            continue
        if not in_class and letter == "(" and text[place + 1 : place + 2] != "?":
            seen += 1
            letter = f"(?P<g{seen}>"
        in_class = letter == "[" or (in_class and letter != "]")
        parts.append(letter)
        place += 1
    return "".join(parts)


@lru_cache(maxsize=256)
def read_regex(pattern: object) -> Regex:
    """The parsed pattern; an UnavailableError if it is not supported here."""
    if not isinstance(pattern, str) or len(pattern) > _MOST_LETTERS:
        raise UnavailableError("a pattern may have at most 1000 characters")
    return _Reader(pattern).read()


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._groups = 0
        self._depth = 0
        self._has_end = False

    def read(self) -> Regex:
        text, may_be_empty = self._alternatives()
        if self._place < len(self._pattern):
            raise self._refusal()
        if self._has_end and "|" in text:
            raise self._refusal()  # a|b$ has $ in one alternative only
        return Regex(text, self._groups, may_be_empty, self._has_end)

    def _refusal(self) -> UnavailableError:
        return UnavailableError(
            f"the pattern {self._pattern!r} is not available here",
            detail=f"from {self._pattern[self._place : self._place + 10]!r} on"
            if self._place < len(self._pattern)
            else None,
            hint="write it with characters, classes such as [a-z] and \\d, groups, |, * + ? {n,m}, "
            "^ and $, or compute it in a subquery of one stream",
        )

    def _next(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _take(self) -> str:
        letter = self._next()
        if not letter:
            raise self._refusal()
        self._place += 1
        return letter

    def _alternatives(self) -> tuple[str, bool]:
        parts = [self._sequence()]
        while self._next() == "|":
            self._take()
            parts.append(self._sequence())
        return "|".join(text for text, _ in parts), any(empty for _, empty in parts)

    def _sequence(self) -> tuple[str, bool]:
        texts, may_be_empty = [], True
        while self._next() not in ("", "|", ")"):
            text, empty = self._repeated()
            texts.append(text)
            may_be_empty = may_be_empty and empty
        return "".join(texts), may_be_empty

    def _repeated(self) -> tuple[str, bool]:
        start = self._place
        text, empty = self._atom()
        quantifier, minimum = self._quantifier()
        if not quantifier:
            return text, empty
        if empty or text in (r"\A", ""):
            self._place = start
            raise self._refusal()
        if self._next() in ("*", "+", "?", "{"):
            raise self._refusal()
        return text + quantifier, minimum == 0

    def _quantifier(self) -> tuple[str, int]:
        letter = self._next()
        if letter not in ("*", "+", "?", "{") or not letter:
            return "", 1
        start = self._place
        if letter == "{":
            end = self._pattern.find("}", self._place)
            inside = self._pattern[self._place + 1 : end].split(",")
            numbers = [one for one in inside if one]
            are_numbers = all(one.isascii() and one.isdigit() for one in numbers)
            if end < 0 or len(inside) > 2 or not inside[0] or not are_numbers:
                raise self._refusal()
            if any(int(one[:5]) > _MOST_REPEATS for one in numbers):
                raise self._refusal()
            self._place = end + 1
            minimum = int(inside[0])
        else:
            self._take()
            minimum = 1 if letter == "+" else 0
        if self._next() == "?":
            self._take()
        return self._pattern[start : self._place], minimum

    def _atom(self) -> tuple[str, bool]:
        letter = self._take()
        match letter:
            case "(":
                return self._group()
            case "[":
                return self._class(), False
            case ".":
                return _POINT, False
            case "^":
                if self._place != 1:
                    raise self._refusal()
                return r"\A", True
            case "$":
                if self._place != len(self._pattern) or self._depth:
                    raise self._refusal()
                self._has_end = True
                return "", True
            case "\\":
                return self._escape(), False
            case "*" | "+" | "?" | "{" | "}" | "]":
                self._place -= 1
                raise self._refusal()
        return letter, False

    def _group(self) -> tuple[str, bool]:
        opening = "("
        if self._next() == "?":
            if self._pattern[self._place : self._place + 2] != "?:":
                raise self._refusal()
            self._place += 2
            opening = "(?:"
        else:
            self._groups += 1
        self._depth += 1
        if self._depth > 20:
            raise self._refusal()
        text, empty = self._alternatives()
        self._depth -= 1
        if self._next() != ")":
            raise self._refusal()
        self._take()
        return f"{opening}{text})", empty

    def _escape(self) -> str:
        letter = self._take()
        if letter in _CLASSES:
            return f"[{_CLASSES[letter]}]"
        if letter.lower() in _CLASSES:
            return f"[^{_CLASSES[letter.lower()]}]"
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        return self._literal(letter)

    def _literal(self, letter: str) -> str:
        if letter.isascii() and not letter.isalnum() and letter.isprintable():
            return f"\\{letter}" if letter in _META else letter
        raise self._refusal()

    def _class(self) -> str:
        negated = self._next() == "^"
        if negated:
            self._take()
        items: list[str] = []
        while self._next() != "]" or not items:
            items.append(self._class_item())
        self._take()
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _class_item(self) -> str:
        first = self._class_letter()
        ahead = self._pattern[self._place : self._place + 2]
        if ahead.startswith("-") and not ahead.endswith("]") and len(ahead) == 2:
            self._take()
            last = self._class_letter()
            if len(first) > 1 or len(last) > 1 or last < first:
                raise self._refusal()
            return f"{first}-{last}"
        return first

    def _class_letter(self) -> str:
        letter = self._take()
        if letter == "\\":
            following = self._take()
            if following in _CLASSES:
                return _CLASSES[following]
            if following in _CONTROLS:
                return _CONTROLS[following]
            self._literal(following)
            return f"\\{following}"
        if letter in "[&]^" or (letter.isspace() and letter != " "):
            raise self._refusal()
        return f"\\{letter}" if letter == "-" else letter


def read_replacement(by: object, regex: Regex | None) -> str:
    """Translate a replacement to RE2's syntax: $1 is a group, \\ escapes."""
    if not isinstance(by, str):
        raise UnavailableError("the replacement must be a text")
    parts, place = [], 0
    while place < len(by):
        letter = by[place]
        following = by[place + 1 : place + 2]
        if letter == "$":
            behind = by[place + 2 : place + 3]
            is_group = following.isascii() and following.isdigit() and not behind.isdigit()
            if not is_group or (regex is not None and int(following) > regex.groups):
                raise UnavailableError(
                    f"the replacement {by!r} is not available here",
                    hint="$1 to $9 are groups of the pattern; write \\$ for the character",
                )
            parts.append(f"\\{following}")
            place += 2
        elif letter == "\\":
            if not following:
                raise UnavailableError(f"the replacement {by!r} ends with \\")
            parts.append("\\\\" if following == "\\" else following)
            place += 2
        else:
            parts.append(letter)
            place += 1
    return "".join(parts)
