"""Java's regular expressions as trees, as far as the time that they take depends on it.

What can match is not kept exactly: a set of characters may be larger than it is, never smaller.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

OTHER: Final = 128
"""Stands for all characters beyond ASCII."""
ANY: Final = frozenset(range(OTHER + 1))
_DIGITS: Final = frozenset(map(ord, "0123456789"))
_SPACES: Final = frozenset(map(ord, " \t\n\x0b\f\r"))
_WORDS: Final = frozenset(code for code in range(OTHER) if chr(code).isalnum() or code == 95)
_CLASSES: Final = {"d": _DIGITS, "s": _SPACES, "w": _WORDS, "h": {9, 32, OTHER}}
_QUANTIFIER: Final = re.compile(r"([*+?]|\{(\d+)(,?)(\d*)\})([+?]?)")
_HEAD: Final = re.compile(r"\((\?(<\w+>|<?[=!]|[>:]|([\w-]*)(:?)))?")
_ZERO_WIDTH: Final = "bBAGzZ"
_HAS_OPERAND: Final = {"x": re.compile(r"\{\w*\}|\w{0,2}"), "u": re.compile(r"\w{0,4}")}
_NAMED: Final = re.compile(r"\{[^}]*\}|<\w*>")
_MOST_DEPTH: Final = 100
UNBOUNDED: Final = 1 << 30


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    codes: frozenset[int]


@dataclass(frozen=True)
class Anchor:
    """Matches a place: ^, $, \\b."""

    is_start: bool = False


@dataclass(frozen=True)
class Again:
    """What a group has matched, once more: \\1."""


@dataclass(frozen=True)
class Concatenation:
    items: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    options: tuple[Tree, ...]


@dataclass(frozen=True)
class Atomic:
    """Matches in one way at most: (?>…), lookahead, lookbehind."""

    inner: Tree
    is_place: bool = False
    looks_behind: bool = False


@dataclass(frozen=True)
class Repetition:
    inner: Tree
    minimum: int
    maximum: int
    is_possessive: bool
    text: str
    """As it is written."""


Tree: TypeAlias = Chars | Anchor | Again | Concatenation | Choice | Atomic | Repetition


class UnreadableError(Exception):
    """A part of a pattern whose running time cannot be estimated."""


def read_pattern(pattern: str) -> Tree:
    """The tree of a pattern; whether Java takes it is for Java to say."""
    return _Reader(_unquoted(pattern)).read()


def _unquoted(pattern: str) -> str:
    """The pattern in which \\Q…\\E is spelt by escapes, as Java does before it reads it."""
    parts, place = [], 0
    while place < len(pattern):
        if pattern.startswith("\\Q", place):
            end = pattern.find("\\E", place + 2)
            quoted = pattern[place + 2 : end if end >= 0 else len(pattern)]
            parts.append("".join(one if one.isalnum() else f"\\{one}" for one in quoted))
            place = end + 2 if end >= 0 else len(pattern)
            continue
        size = 2 if pattern[place] == "\\" else 1
        parts.append(pattern[place : place + size])
        place += size
    return "".join(parts)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._depth = 0
        flags = "".join(one[3] or "" for one in _HEAD.finditer(re.sub(r"\\.", "", pattern)))
        if "x" in flags:
            raise UnreadableError("(?x)")
        self._has_lines = "m" in flags
        self._folds = "i" in flags
        self._is_plain = not set(flags) - set("ims-")

    def read(self) -> Tree:
        tree = self._choice()
        while self._place < len(self._pattern):  # a bracket too many: Java refuses it
            self._place += 1
            tree = Concatenation((tree, self._choice()))
        return tree

    def _choice(self) -> Tree:
        options = [self._sequence()]
        while self._next() == "|":
            self._place += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Tree:
        items: list[Tree] = []
        while self._next() not in ("", "|", ")"):
            start = self._place
            items.append(self._repeated(start, self._atom()))
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def _repeated(self, start: int, inner: Tree) -> Tree:
        while (quantifier := _QUANTIFIER.match(self._pattern, self._place)) is not None:
            self._place = quantifier.end()
            minimum, maximum = _times(quantifier)
            text = self._pattern[start : self._place]
            inner = Repetition(inner, minimum, maximum, quantifier[5] == "+", text)
        return inner

    def _next(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _atom(self) -> Tree:
        letter = self._next()
        if letter == "(":
            return self._group()
        if letter == "[":
            return Chars(self._class())
        self._place += 1
        match letter:
            case "\\":
                return self._escape()
            case ".":
                return Chars(ANY)
            case "^":
                return Anchor(is_start=not self._has_lines)
            case "$":
                return Anchor()
        return Chars(self._folded(letter))

    def _group(self) -> Tree:
        head = _HEAD.match(self._pattern, self._place)
        assert head is not None
        kind = head[2] or ""
        self._place = head.end()
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise UnreadableError("so many groups in each other")
        is_flags = head[3] is not None and bool(head[3]) and not head[4]
        inner: Tree = Concatenation(()) if is_flags else self._choice()
        self._place += 1
        self._depth -= 1
        if kind in ("=", "!", "<=", "<!"):
            return Atomic(inner, is_place=True, looks_behind=kind.startswith("<"))
        return Atomic(inner) if kind == ">" else inner

    def _escape(self) -> Tree:
        letter = self._next()
        self._place += 1
        if letter in _ZERO_WIDTH and letter:
            return Anchor(is_start=letter in "AG")
        if letter.isdigit() and letter != "0":
            return Again()
        if letter == "k":
            self._skip(_NAMED)
            return Again()
        return Chars(self._escaped(letter))

    def _escaped(self, letter: str) -> frozenset[int]:
        """The characters that an escape stands for, behind its letter."""
        if letter.lower() in _CLASSES:
            codes = frozenset(_CLASSES[letter.lower()]) if self._is_plain else ANY
            return codes if letter.islower() or codes == ANY else ANY - codes | {OTHER}
        if letter in _HAS_OPERAND:
            self._skip(_HAS_OPERAND[letter])
        elif letter and letter in "pPN":
            if self._next() == "{":
                self._skip(_NAMED)
            else:
                self._place += 1
        elif letter == "c":
            self._place += 1
        elif not letter.isalnum():
            return self._folded(letter)
        return ANY

    def _skip(self, what: re.Pattern[str]) -> None:
        if (match := what.match(self._pattern, self._place)) is not None:
            self._place = match.end()

    def _class(self) -> frozenset[int]:
        """The characters of [...], which may contain classes."""
        self._place += 1
        is_negated = self._next() == "^"
        self._place += is_negated
        codes: frozenset[int] = frozenset()
        is_known = True
        first = True
        while (letter := self._next()) and (first or letter != "]"):
            first = False
            if letter == "[":
                codes |= self._class()
                continue
            if letter == "&":
                is_known = False
            codes |= self._range()
        self._place += 1
        if not is_known:
            return ANY
        return ANY - codes | {OTHER} if is_negated else codes

    def _range(self) -> frozenset[int]:
        low = self._one_of_class()
        ahead = self._pattern[self._place + 1 : self._place + 2]
        if self._next() != "-" or ahead in ("]", "[", ""):
            return low
        self._place += 1
        high = self._one_of_class()
        if len(low - {OTHER}) > 2 or not low or not high:
            return ANY
        codes = frozenset(range(min(low), min(max(high), OTHER) + 1))
        folded = frozenset().union(*(self._folded(chr(one)) for one in codes if one < OTHER))
        return codes | folded

    def _one_of_class(self) -> frozenset[int]:
        letter = self._next()
        self._place += 1
        if letter != "\\":
            return self._folded(letter)
        letter = self._next()
        self._place += 1
        return self._escaped(letter)

    def _folded(self, letter: str) -> frozenset[int]:
        if not self._is_plain or not letter:
            return ANY
        if not self._folds or not letter.isalpha():
            return frozenset({min(ord(letter), OTHER)})
        return frozenset({*(min(ord(one[0]), OTHER) for one in (letter.lower(), letter.upper()))})


def _times(quantifier: re.Match[str]) -> tuple[int, int]:
    """The minimum and maximum number of repetitions."""
    match quantifier[1]:
        case "*":
            return 0, UNBOUNDED
        case "+":
            return 1, UNBOUNDED
        case "?":
            return 0, 1
    minimum = min(int(quantifier[2][:10]), UNBOUNDED)
    if not quantifier[3]:
        return minimum, minimum
    return minimum, min(int(quantifier[4][:10]), UNBOUNDED) if quantifier[4] else UNBOUNDED
