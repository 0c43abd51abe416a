"""How long a regular expression may take: Java tries every way, and cannot be interrupted.

The time of a pattern is bounded by a polynomial of the length of the text: one more power for each
repetition without bound that can be tried anew for each way of those before it, and one for a
search that may begin anywhere. `a*b` takes the square of the length, `^a*b` does not, and
`\\d+-\\d+` takes no more than `\\d+`: a text that is not a number ends both. Optional parts and
alternatives multiply.

Where a group is repeated inside of which something is repeated or chosen, there is no such
polynomial: (a+)+, (a|aa)*. Possessive quantifiers (a++) and atomic groups (?>a+) take what they
find and try no other way, so there is always another spelling of a pattern that is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from math import comb
from typing import Final

from nilometer.sql.expressions.pattern_trees import (
    ANY,
    Again,
    Anchor,
    Atomic,
    Chars,
    Choice,
    Concatenation,
    Repetition,
    Tree,
    UnreadableError,
    read_pattern,
)

MOST_STEPS: Final = 10**9
"""Steps of Java's for one text: some seconds."""
LONGEST: Final = 1_000_000
"""A pattern that can be looked for in a text as long as this takes any text."""
SHORTEST: Final = 200
"""A pattern that cannot be looked for in a text as long as this is refused."""
_FEW: Final = 10
"""How often a group may be repeated that matches in several ways."""
_COUNTED: Final = 100
"""In how many ways one character may be repeated before that counts as without bound."""
_MOST_PARTS: Final = 100_000
_OF_A_CHARACTER: Final = 1 / 16
"""To compare a character takes less than to try another way."""


@dataclass(frozen=True)
class _Rest:
    """All that follows a place of a pattern: what it takes to try it there, in every way."""

    steps: tuple[float, ...] = (1.0,)
    """For a text of n characters: the sum of steps[p] times the number of ways to choose p places
    of it, in order."""
    first: frozenset[int] = ANY
    """The characters of which it tests one before anything else; ANY: it may test none."""
    tests: float = 1.0
    """How many times it looks at a character that is none of those."""
    is_sure: bool = False
    """Whether it matches wherever it is tried."""

    def plus(self, steps: tuple[float, ...]) -> _Rest:
        """One thing is tried, and then this."""
        both = zip_longest(self.steps, steps, fillvalue=0.0)
        return replace(self, steps=tuple(one + other for one, other in both))

    def times(self, number: float) -> _Rest:
        return replace(self, steps=tuple(one * number for one in self.steps))

    def anywhere(self) -> _Rest:
        """This is tried at every place of the text."""
        return replace(self, steps=(0.0, *self.steps))


_END: Final = _Rest(is_sure=True)
_UNIT: Final = _Rest()
_SCAN: Final = (0.0, 1.0)
"""The steps that it takes to look at the text once."""


class _SlowError(Exception):
    """A part for which there is no bound."""


def longest_text(pattern: str, steps: int = MOST_STEPS) -> int:
    """In how long a text a pattern may be looked for; LONGEST: in any.

    >>> longest_text("^([0-9]+)-([0-9]+)$") == longest_text("error") == LONGEST
    True
    >>> longest_text("error.*timeout"), longest_text("a*a*b")
    (28642, 1812)
    """
    time = search_steps(pattern)
    return 0 if isinstance(time, str) else _longest(time, steps)


def slow_part(pattern: str) -> str | None:
    """The part of a regular expression that may run for years; None: no such part.

    >>> slow_part("^(a+)+$"), slow_part("(a|aa)*b"), slow_part("(?:ab)+c?")
    ('(a+)+', '(a|aa)*', None)
    """
    time = search_steps(pattern)
    if isinstance(time, str):
        return time
    return pattern if _longest(time, MOST_STEPS) < SHORTEST else None


def longest_like(pattern: str, steps: int = MOST_STEPS) -> int:
    """The same for a pattern of LIKE, in which % is the only repetition."""
    powers = pattern.rstrip("%").count("%")  # Spark makes .* of each
    time = (1 + len(pattern) * _OF_A_CHARACTER,)
    return _longest((*(0.0 for _ in range(powers)), *time), steps)


def without_start(pattern: str) -> str:
    """A pattern that is found in the same texts: what may be anything need not be looked for."""
    return re.sub(r"\A(?:\.\*[?]?(?![*+?{]))+", "", pattern)


@lru_cache(maxsize=1024)
def search_steps(pattern: str) -> tuple[float, ...] | str:
    """The steps of a search, or the part for which there is no bound."""
    try:
        tree = read_pattern(pattern)
        time = _Judge().before(tree, _END)
    except (_SlowError, UnreadableError) as error:
        return str(error)
    return time.steps if _is_anchored(tree) else time.anywhere().steps


def steps_for(time: tuple[float, ...], length: int) -> float:
    """How many steps a search takes at most."""
    return sum(each * comb(length + power, power) for power, each in enumerate(time) if each)


def _longest(time: tuple[float, ...], steps: int) -> int:
    """The length of a text for which a pattern takes so many steps."""
    low, high = 0, LONGEST
    while low < high:
        length = (low + high + 1) // 2
        if steps_for(time, length) <= steps:
            low = length
        else:
            high = length - 1
    return low


def _is_anchored(tree: Tree) -> bool:
    """Whether a pattern can match at the start of the text only."""
    match tree:
        case Anchor():
            return tree.is_start
        case Concatenation():
            first = next(
                (one for one in tree.items if one != Concatenation(())), None
            )  # (?i) is empty
            return first is not None and _is_anchored(first)
        case Choice():
            return all(map(_is_anchored, tree.options))
    return False


class _Judge:
    """Judges a pattern from its end to its start."""

    def __init__(self) -> None:
        self._parts = 0

    def before(self, tree: Tree, rest: _Rest) -> _Rest:
        """A part and what follows it."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise _SlowError("so many parts")
        match tree:
            case Chars():
                return _Rest(rest.plus((_OF_A_CHARACTER,)).steps, tree.codes)
            case Anchor():
                return replace(rest, is_sure=False)
            case Again():
                return _Rest(rest.plus(_SCAN).steps)
            case Concatenation():
                for one in reversed(tree.items):
                    rest = self.before(one, rest)
                return rest
            case Choice():
                return _either([self.before(one, rest) for one in tree.options])
            case Atomic():
                return self._atomic(tree, rest)
            case Repetition() if isinstance(tree.inner, Chars):
                return _repeat_character(tree, tree.inner.codes, rest)
            case Repetition():
                return self._repeat(tree, rest)

    def _atomic(self, tree: Atomic, rest: _Rest) -> _Rest:
        inner = self.before(tree.inner, _UNIT)
        if tree.looks_behind and not _is_single(tree.inner):
            inner = inner.anywhere()  # from every place where it may begin
        first = ANY if tree.is_place else inner.first
        return _Rest(rest.plus(inner.steps).steps, first, inner.tests)

    def _repeat(self, tree: Repetition, rest: _Rest) -> _Rest:
        inner = self.before(tree.inner, _UNIT)
        first = inner.first if tree.minimum else inner.first | rest.first
        tests = inner.tests + rest.tests
        is_sure = rest.is_sure and not tree.minimum
        if not tree.is_possessive:
            if tree.maximum <= _FEW:
                return self._repeat_few(tree, rest)
            if not _is_single(tree.inner):
                raise _SlowError(tree.text)
            if tree.minimum != tree.maximum and not is_sure:
                return _Rest(rest.plus(inner.steps).anywhere().steps, first, tests)
        many = inner.times(tree.maximum) if tree.maximum <= _COUNTED else inner.anywhere()
        return _Rest(rest.plus(many.steps).steps, first, tests, is_sure)

    def _repeat_few(self, tree: Repetition, rest: _Rest) -> _Rest:
        for number in range(tree.maximum, 0, -1):
            again = self.before(tree.inner, rest)
            rest = again if number <= tree.minimum else _either([again, rest])
        return rest


def _repeat_character(tree: Repetition, codes: frozenset[int], rest: _Rest) -> _Rest:
    choices = tree.maximum - tree.minimum
    is_sure = rest.is_sure and not tree.minimum
    first = codes if tree.minimum else codes | rest.first
    if rest.is_sure and tree.minimum <= _FEW:
        own: tuple[float, ...] = (1.0,)  # whatever more it takes is not looked at again
    elif tree.maximum > _COUNTED:
        own = (0.0, rest.tests)
    else:
        own = (1 + tree.maximum * (rest.tests if choices else _OF_A_CHARACTER),)
    if choices and not tree.is_possessive and not rest.is_sure and codes & rest.first:
        rest = rest.anywhere() if choices > _COUNTED else rest.times(choices + 1)
    return _Rest(rest.plus(own).steps, first, 1 + rest.tests, is_sure)


def _either(options: list[_Rest]) -> _Rest:
    total = options[0]
    for one in options[1:]:
        total = total.plus(one.steps)
    first = frozenset[int]().union(*(one.first for one in options))
    tests = sum(one.tests for one in options)
    return _Rest(total.steps, first, tests, any(one.is_sure for one in options))


def _is_single(tree: Tree) -> bool:
    """Whether something matches in one way at most, wherever it is tried."""
    match tree:
        case Chars() | Anchor() | Again() | Atomic():
            return True
        case Concatenation():
            return all(map(_is_single, tree.items))
        case Repetition():
            return tree.is_possessive or (tree.minimum == tree.maximum and _is_single(tree.inner))
    return False
