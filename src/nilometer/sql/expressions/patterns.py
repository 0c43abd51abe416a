"""Regular expressions that take for ever: Java tries every way, and nothing interrupts it.

A group that is repeated, and inside of which something is repeated or chosen, can match the same
text in a number of ways that doubles with every character: (a+)+, (a|aa)*. Possessive quantifiers
(a++) and atomic groups (?>a+) take what they find and try no other way, so there is always another
spelling of a pattern that is refused here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_QUANTIFIER: Final = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")
_FEW_TIMES: Final = 3
"""So often a group may be repeated, whatever is in it."""
_SMALL: Final = 10
"""So often one may be in which repetitions are as small."""
_WILDCARDS: Final = 3
"""So many places of any length may match anything in a pattern, beside its end."""
_ENDS: Final = ("", "?", "$", "?$")
_UNBOUNDED: Final = 1 << 30


@dataclass
class _Group:
    is_atomic: bool
    most: int = 1
    """The largest number of times that something in it is repeated, where that may vary."""
    has_choice: bool = False


def slow_part(pattern: str) -> str | None:
    """What of a regular expression may take for ever; None: nothing.

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
        elif char == ")" and len(groups) > 1:
            closed, began = groups.pop(), starts.pop()
            if closed.is_atomic:
                closed = _Group(is_atomic=True)
            groups[-1].most = max(groups[-1].most, closed.most)
            groups[-1].has_choice |= closed.has_choice
        place += 1
    return pattern if wildcards > _WILDCARDS else None


def has_many_wildcards(pattern: str) -> bool:
    """Whether a pattern of LIKE has more places of any length than can be tried in time."""
    return len(re.findall(r"%+", pattern.rstrip("%"))) > _WILDCARDS


def _is_slow(group: _Group, times: int) -> bool:
    if times <= _FEW_TIMES:
        return False
    if times <= _SMALL and group.most <= _SMALL:
        return False
    return group.most > 1 or group.has_choice


def _times(quantifier: str) -> tuple[int, int]:
    """How often at least and at most."""
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
    """Whether the character before this place has a backslash before it."""
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
    """Behind [...], in which classes may stand, too."""
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
    """Behind the head of a group: (?:, (?=, (?<name>, or the bracket alone."""
    head = re.compile(r"\((\?(<\w+>|<?[=!]|[>:]|[\w-]*:?))?").match(pattern, place)
    assert head is not None
    return head.end()
