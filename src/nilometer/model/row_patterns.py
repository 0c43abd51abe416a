"""Row patterns (SQL:2016, 19075-5): what PATTERN says, and the program that searches for it.

A program is run starting at a row. Where it can continue in two ways, the first is preferred: the
match of a row is the first one found in this order, as in the standard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

MOST_STEPS: Final = 1000
"""The maximum number of steps in a program."""
MOST_VARIABLES: Final = 60


@dataclass(frozen=True, slots=True)
class Variable:
    """A row for which the condition of this variable holds."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several parts; earlier ones are preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part repeated; as often as possible if greedy, else as rarely as possible."""

    part: Pattern
    minimum: int
    maximum: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Absent:
    """No row for which this variable's condition holds, until the time of the match is over."""

    name: str


Pattern: TypeAlias = Variable | Sequence | Alternation | Repeat | Absent


class Op(StrEnum):
    TAKE = "take"
    """A row of a variable."""
    SPLIT = "split"
    """Continue at either of two places, the first preferred."""
    ABSENT = "absent"
    """Skip rows until the time is over; fail at a row of a variable."""
    MATCH = "match"


@dataclass(frozen=True, slots=True)
class PatternStep:
    """A step of a program; TAKE and ABSENT continue with the step after them."""

    op: Op
    variable: int = -1
    first: int = -1
    second: int = -1


def names_in(pattern: Pattern) -> Iterator[str]:
    """The variables of a pattern, from left to right, including repetitions."""
    match pattern:
        case Variable(name) | Absent(name):
            yield name
        case Repeat(part):
            yield from names_in(part)
        case Sequence(parts) | Alternation(parts):
            for one in parts:
                yield from names_in(one)


def min_rows(pattern: Pattern) -> int:
    """The minimum number of rows in a match."""
    match pattern:
        case Variable():
            return 1
        case Absent():
            return 0
        case Repeat(part, minimum):
            return minimum * min_rows(part)
        case Sequence(parts):
            return sum(map(min_rows, parts))
        case Alternation(parts):
            return min(map(min_rows, parts))


def max_rows(pattern: Pattern) -> int | None:
    """The maximum number of rows in a match; None: there is no bound."""
    match pattern:
        case Variable():
            return 1
        case Absent():
            return 0
        case Repeat(part, _, maximum):
            inner = max_rows(part)
            return None if maximum is None or inner is None else maximum * inner
    parts = [max_rows(one) for one in pattern.parts]
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    return sum(known) if isinstance(pattern, Sequence) else max(known)


def count_steps(pattern: Pattern) -> int:
    """The number of steps in the program of a pattern."""
    match pattern:
        case Variable() | Absent():
            return 1
        case Repeat(part, minimum, maximum):
            inner = count_steps(part)
            if maximum is None:
                return minimum * inner + inner + 2
            return minimum * inner + (maximum - minimum) * (inner + 1)
        case Sequence(parts):
            return sum(map(count_steps, parts))
        case Alternation(parts):
            return sum(map(count_steps, parts)) + 2 * (len(parts) - 1)


def build_program(pattern: Pattern, variables: tuple[str, ...]) -> tuple[PatternStep, ...]:
    """The program that searches for a pattern, with its variables numbered."""
    steps: list[PatternStep] = []
    _build(pattern, variables, steps)
    return (*steps, PatternStep(Op.MATCH))


def _build(pattern: Pattern, names: tuple[str, ...], steps: list[PatternStep]) -> None:
    match pattern:
        case Variable(name):
            steps.append(PatternStep(Op.TAKE, names.index(name)))
        case Absent(name):
            steps.append(PatternStep(Op.ABSENT, names.index(name)))
        case Sequence(parts):
            for one in parts:
                _build(one, names, steps)
        case Alternation(parts):
            _build_alternation(parts, names, steps)
        case Repeat(part, minimum, maximum, greedy):
            for _ in range(minimum):
                _build(part, names, steps)
            if maximum is None:
                _build_loop(part, greedy, names, steps)
            else:
                _build_options(part, maximum - minimum, greedy, names, steps)


def _split(inside: int, outside: int, greedy: bool) -> PatternStep:
    return PatternStep(Op.SPLIT, -1, *((inside, outside) if greedy else (outside, inside)))


def _build_loop(
    part: Pattern, greedy: bool, names: tuple[str, ...], steps: list[PatternStep]
) -> None:
    first = len(steps)
    steps.append(PatternStep(Op.SPLIT))
    _build(part, names, steps)
    steps.append(PatternStep(Op.SPLIT, -1, first, first))
    steps[first] = _split(first + 1, len(steps), greedy)


def _build_options(
    part: Pattern, count: int, greedy: bool, names: tuple[str, ...], steps: list[PatternStep]
) -> None:
    """Steps for a part repeated up to a limit: it can be left before each repetition."""
    splits = []
    for _ in range(count):
        splits.append(len(steps))
        steps.append(PatternStep(Op.SPLIT))
        _build(part, names, steps)
    for place in splits:
        steps[place] = _split(place + 1, len(steps), greedy)


def _build_alternation(
    parts: tuple[Pattern, ...], names: tuple[str, ...], steps: list[PatternStep]
) -> None:
    ends = []
    for one in parts[:-1]:
        place = len(steps)
        steps.append(PatternStep(Op.SPLIT))
        _build(one, names, steps)
        ends.append(len(steps))
        steps.append(PatternStep(Op.SPLIT))
        steps[place] = _split(place + 1, len(steps), greedy=True)
    _build(parts[-1], names, steps)
    for place in ends:
        steps[place] = PatternStep(Op.SPLIT, -1, len(steps), len(steps))


def show_pattern(pattern: Pattern) -> str:
    """A pattern as SQL writes it."""
    match pattern:
        case Variable(name):
            return name
        case Absent(name):
            return f"NOT {name}"
        case Sequence(parts):
            return " ".join(_in_brackets(one, Alternation) for one in parts)
        case Alternation(parts):
            return " | ".join(map(show_pattern, parts))
        case Repeat(part, minimum, maximum, greedy):
            shown = _in_brackets(part, (Alternation, Sequence, Repeat))
            return f"{shown}{_show_count(minimum, maximum)}{'' if greedy else '?'}"


def _in_brackets(pattern: Pattern, kinds: type | tuple[type, ...]) -> str:
    shown = show_pattern(pattern)
    return f"({shown})" if isinstance(pattern, kinds) else shown


def _show_count(minimum: int, maximum: int | None) -> str:
    match minimum, maximum:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
    if minimum == maximum:
        return f"{{{minimum}}}"
    return f"{{{minimum},{'' if maximum is None else maximum}}}"
