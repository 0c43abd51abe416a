"""Regular expressions that run for ever: Java tries every way, and cannot be interrupted.

A group that is repeated, and inside of which something is repeated or chosen, can match the same
text in a number of ways that doubles with every character: (a+)+, (a|aa)*. Possessive quantifiers
(a++) and atomic groups (?>a+) take what they find and try no other way, so there is always another
spelling of a pattern that is refused here. Consecutive choices are multiplied:
a?a?a? can match in eight ways, and thirty of them would practically never end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_QUANTIFIER: Final = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")
_FEW_TIMES: Final = 3
"""How often a group may be repeated, whatever is in it."""
_SMALL: Final = 10
"""How often a group may be repeated whose own repetitions are as small."""
_WILDCARDS: Final = 3
"""How many variable-length wildcards a pattern may have, not counting its end."""
_ENDS: Final = ("", "?", "$", "?$")
_UNBOUNDED: Final = 1 << 30
_MOST_WAYS: Final = 1 << 16
"""In how many ways a pattern may match, through optional parts and alternatives."""
_ENOUGH: Final = 64
"""A choice repeated this often has more ways than allowed."""


@dataclass
class _Group:
    is_atomic: bool
    most: int = 1
    """The largest number of times that something in it is repeated, where that may vary."""
    has_choice: bool = False
    before: int = 0
    """In how many ways the alternatives before the last one match,"""
    ways: int = 1
    """and in how many that one does, so far."""

    @property
    def all_ways(self) -> int:
        return self.before + self.ways


def slow_part(pattern: str) -> str | None:
    """The part of a regular expression that may run for ever; None: no such part.

    >>> slow_part("^(a+)+$"), slow_part("(a|aa)*b"), slow_part("(?:ab)+c?")
    ('(a+)+', '(a|aa)*', None)
    """
    groups = [_Group(is_atomic=False)]
    starts = [0]
    place = wildcards = 0
    closed: _Group | None = None
    began = 0
    while place < len(pattern):
        char = pattern[place]
        quantifier = _QUANTIFIER.match(pattern, place)
        if quantifier is not None and place > 0:
            end = quantifier.end()
            is_possessive = pattern[end : end + 1] == "+"
            few, most = _times(quantifier[0])
            if not is_possessive and few != most:
                is_any = pattern[place - 1] == "." and not _is_escaped(pattern, place)
                wildcards += is_any and most > _SMALL and pattern[end:] not in _ENDS
                groups[-1].most = max(groups[-1].most, most)
            one = 1 if closed is None else closed.all_ways
            repeated = 1 if is_possessive else _ways(one, few, most)
            groups[-1].ways = groups[-1].ways // one * repeated
            if closed is not None and not is_possessive and _is_slow(closed, most):
                return pattern[began:end]
            place = end + (pattern[end : end + 1] in ("+", "?"))
            closed = None
            continue
        closed = None
        if char == "\\":
            place = _after_escape(pattern, place)
            continue
        if char == "[":
            place = _after_class(pattern, place)
            continue
        if char == "(":
            groups.append(_Group(pattern.startswith("(?>", place)))
            starts.append(place)
            place = _after_head(pattern, place)
            continue
        if char == "|":
            groups[-1].has_choice = True
            groups[-1].before, groups[-1].ways = groups[-1].all_ways, 1
        elif char == ")" and len(groups) > 1:
            closed, began = groups.pop(), starts.pop()
            if closed.all_ways > _MOST_WAYS:
                return pattern[began : place + 1]
            if closed.is_atomic:
                closed = _Group(is_atomic=True)
            groups[-1].most = max(groups[-1].most, closed.most)
            groups[-1].has_choice |= closed.has_choice
            groups[-1].ways *= closed.all_ways
        place += 1
    has_many = any(one.all_ways > _MOST_WAYS for one in groups)
    return pattern if wildcards > _WILDCARDS or has_many else None


def has_many_wildcards(pattern: str) -> bool:
    """Whether a pattern of LIKE has more wildcards than can be tried in reasonable time."""
    return len(re.findall(r"%+", pattern.rstrip("%"))) > _WILDCARDS


def _is_slow(group: _Group, times: int) -> bool:
    if times <= _FEW_TIMES:
        return False
    if times <= _SMALL and group.most <= _SMALL:
        return False
    return group.most > 1 or group.has_choice


def _ways(one: int, few: int, most: int) -> int:
    """In how many ways something can be repeated; Java's memory of what it tried is unbounded."""
    if most >= _UNBOUNDED:
        most = few
    counts = range(min(few, _ENOUGH), min(most, _ENOUGH) + 1)
    return max(most - few + 1, sum(int(one**times) for times in counts))


def _times(quantifier: str) -> tuple[int, int]:
    """The minimum and maximum number of repetitions."""
    match quantifier:
        case "*":
            return 0, _UNBOUNDED
        case "+":
            return 1, _UNBOUNDED
        case "?":
            return 0, 1
    few, comma, most = quantifier[1:-1].partition(",")
    least = min(int(few), _UNBOUNDED)
    return least, least if not comma else min(int(most), _UNBOUNDED) if most else _UNBOUNDED


def _is_escaped(pattern: str, place: int) -> bool:
    """Whether the character before this position is escaped by a backslash."""
    before = len(pattern[: place - 1]) - len(pattern[: place - 1].rstrip("\\"))
    return before % 2 == 1


def _after_escape(pattern: str, place: int) -> int:
    if pattern.startswith("\\Q", place):
        end = pattern.find("\\E", place)
        return len(pattern) if end < 0 else end + 2
    if pattern[place + 1 : place + 2] in ("p", "P") and pattern[place + 2 : place + 3] == "{":
        end = pattern.find("}", place)
        return len(pattern) if end < 0 else end + 1
    return place + 2


def _after_class(pattern: str, place: int) -> int:
    """The position after [...], which may contain classes."""
    depth = 0
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            place = _after_escape(pattern, place)
            continue
        depth += (char == "[") - (char == "]")
        place += 1
        if not depth:
            break
        if char == "[" and pattern[place : place + 1] == "^":
            place += 1
        if char == "[" and pattern[place : place + 1] == "]":
            place += 1  # first of all, it is one of the class
    return place


def _after_head(pattern: str, place: int) -> int:
    """The position after the head of a group: (?:, (?=, (?<name>, or the bracket alone."""
    head = re.compile(r"\((\?(<\w+>|<?[=!]|[>:]|[\w-]*:?))?").match(pattern, place)
    assert head is not None
    return head.end()
