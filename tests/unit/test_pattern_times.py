"""How long a pattern may take, beside a matcher that tries every way and counts its steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nilometer.sql.expressions.patterns import (
    LONGEST,
    MOST_STEPS,
    longest_like,
    longest_text,
    search_steps,
    slow_part,
    without_start,
)

_MOST = 100_000
"""Steps at which the matcher gives up."""


class TooLongError(Exception):
    pass


class Backtracking:
    """Matches as Java does: everything is tried in order, and nothing is remembered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = 0
        self.groups: dict[int, str] = {}

    def search(self, pattern: str) -> bool:
        parser: Any = re._parser  # type: ignore[attr-defined]
        parsed = list(parser.parse(pattern))
        return any(
            True for start in range(len(self.text) + 1) for _ in self.sequence(parsed, 0, start)
        )

    def sequence(self, parsed: Any, number: int, place: int) -> Iterator[int]:
        if number == len(parsed):
            yield place
            return
        for behind in self.one(parsed[number], place):
            yield from self.sequence(parsed, number + 1, behind)

    def one(self, part: tuple[Any, Any], place: int) -> Iterator[int]:
        op, given_to = part
        self.steps += 1
        if self.steps > _MOST:
            raise TooLongError
        letter = self.text[place : place + 1]
        match str(op):
            case "LITERAL":
                yield from (place + 1 for _ in "1" if letter and ord(letter) == given_to)
            case "NOT_LITERAL":
                yield from (place + 1 for _ in "1" if letter and ord(letter) != given_to)
            case "ANY":
                yield from (place + 1 for _ in "1" if letter)
            case "IN":
                yield from (place + 1 for _ in "1" if letter and _is_in(given_to, letter))
            case "AT":
                ends = (0, len(self.text))["BEGINNING" not in str(given_to)]
                yield from (place for _ in "1" if place == ends)
            case "BRANCH":
                for one in given_to[1]:
                    yield from self.sequence(list(one), 0, place)
            case "SUBPATTERN":
                for behind in self.sequence(list(given_to[-1]), 0, place):
                    self.groups[given_to[0]] = self.text[place:behind]
                    yield behind
            case "GROUPREF":
                known = self.groups.get(given_to)
                if known is not None:
                    self.steps += len(known)
                    yield from (place + len(known) for _ in "1" if self._has(known, place))
            case "ATOMIC_GROUP":
                yield from _first(self.sequence(list(given_to), 0, place))
            case "POSSESSIVE_REPEAT":
                few, most, body = given_to
                yield from _first(self.repeat(list(body), few, most, place, is_greedy=True))
            case "MAX_REPEAT" | "MIN_REPEAT":
                few, most, body = given_to
                is_greedy = str(op) == "MAX_REPEAT"
                yield from self.repeat(list(body), few, most, place, is_greedy)
            case "ASSERT" | "ASSERT_NOT":
                matched = [*_first(self.sequence(list(given_to[1]), 0, place))]
                yield from (place for _ in "1" if bool(matched) == (str(op) == "ASSERT"))
            case _:
                raise AssertionError(op)

    def _has(self, known: str, place: int) -> bool:
        return self.text.startswith(known, place)

    def repeat(self, body: Any, few: int, most: int, place: int, is_greedy: bool) -> Iterator[int]:
        if few <= 0 and not is_greedy:
            yield place
        if int(most) > 0:
            for behind in self.sequence(body, 0, place):
                if behind > place or few > 0:
                    yield from self.repeat(body, few - 1, int(most) - 1, behind, is_greedy)
        if few <= 0 and is_greedy:
            yield place


def _first(ends: Iterator[int]) -> Iterator[int]:
    for one in ends:
        yield one
        return


def _is_in(items: Any, letter: str) -> bool:
    is_negated = str(items[0][0]) == "NEGATE"
    is_inside = False
    for op, given_to in items:
        match str(op):
            case "LITERAL":
                is_inside |= ord(letter) == given_to
            case "RANGE":
                is_inside |= given_to[0] <= ord(letter) <= given_to[1]
            case "CATEGORY":
                is_inside |= letter.isdigit()  # of \d alone
    return is_inside != is_negated


PIECES = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", ".", "[^a]", "1", "\\d", "[^ab]", "\\.", "[b-d]"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("({})".format),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?>{})".format),
        inner.map("(?={})".format),
        inner.map("(?!{})".format),
        inner.map("({})".format),
        st.tuples(
            inner,
            st.sampled_from(
                ["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "*+", "++", "?+", "{0,200}"]
            ),
        ).map(lambda both: f"(?:{both[0]}){both[1]}"),
        st.tuples(
            st.sampled_from(["a", "b", "[ab]", ".", "\\d", "[^a]"]),
            st.sampled_from(["*", "+", "?", "*?", "+?", "*+", "{0,150}", "{3}"]),
        ).map("".join),
    ),
    max_leaves=9,
)
TEXTS = st.one_of(
    st.tuples(
        st.sampled_from(["a", "b", "ab", "aab", "1", "a1", "abc", "."]),
        st.integers(0, 60),
        st.sampled_from(["", "!", "b", "1"]),
    ).map(lambda made: made[0] * made[1] + made[2]),
    st.text("ab1.c", max_size=40),
)


@settings(max_examples=1000, deadline=None)
@given(PIECES, st.booleans(), st.booleans(), TEXTS)
@example("a*a*a*b", False, False, "a" * 40)
@example("\\d+(?=.*b)a", False, False, "1" * 60)
@example("a*(b|c|1|!|[^a]1)", False, False, "a" * 60)
@example("(a*)\\1\\1b", False, False, "a" * 50)
@example("(?:a+){1,3}b", False, False, "a" * 30)
@example("(?:(?>a*b?)a)*c", False, False, "a" * 60)
def test_no_text_takes_more_steps_than_are_foreseen(
    pattern: str, is_anchored: bool, has_end: bool, text: str
) -> None:
    if is_anchored or has_end:
        pattern = "^" * is_anchored + f"(?:{pattern})" + "$" * has_end
    foreseen = search_steps(pattern)
    if isinstance(foreseen, str):
        return
    matcher = Backtracking(text)
    try:
        matcher.search(pattern)
    except TooLongError:
        assert foreseen_for(pattern, len(text)) > _MOST / 4, (pattern, text)
        return
    allowed = 4 * (foreseen_for(pattern, len(text)) + len(text)) + 64
    assert matcher.steps <= allowed, (pattern, text, matcher.steps, foreseen)


def foreseen_for(pattern: str, length: int) -> float:
    """Steps, of which each stands for a few of those of the matcher."""
    low, high = 1, 2**60
    while low < high:
        middle = (low + high) // 2
        if longest_text(pattern, middle) >= length:
            high = middle
        else:
            low = middle + 1
    return float(low)


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("error", LONGEST),
        ("^\\d+-\\d+$", LONGEST),
        ("^\\[(.*)\\]$", LONGEST),
        ("\\s+", LONGEST),
        ("(\\d+)-(\\d+)", 15_000),
        ("error.*timeout", 15_000),
        ("(\\d{1,3})\\.(\\d{1,3})\\.(\\d{1,3})\\.(\\d{1,3})", LONGEST),
        ("(\\w+)\\s*=\\s*(\\w+)", 15_000),
        ("(?i)^.*error.*timeout", 15_000),
        ("(.*)error(.*)timeout", 1_000),
    ],
)
def test_usual_patterns_may_be_looked_for_in_long_texts(pattern: str, length: int) -> None:
    assert longest_text(pattern) >= length


def test_texts_with_several_wildcards_are_not_too_short() -> None:
    assert longest_text(without_start(".*error.*timeout")) > 20_000
    assert longest_like("%error%timeout%") > 20_000
    assert longest_like("error%") == longest_like("%error") == LONGEST


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        (".*a.*b", "a.*b"),
        (".*?a|b", "a|b"),
        (".*", ""),
        (".*+a", ".*+a"),
        ("..*a", "..*a"),
        ("^.*a", "^.*a"),
        (".*.*a", "a"),
        (".+a", ".+a"),
    ],
)
def test_what_may_be_anything_at_the_start_is_not_looked_for(pattern: str, other: str) -> None:
    assert without_start(pattern) == other


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|a|aa)\\Q\\E+$",  # Java reads (a|a|aa)+$
        "(?x)(a|a|aa #)\n)+$",
        "(?x)(a|a|aa) +$",
        "(((a+){1,3}){1,3}){1,3}b",
        "[^b]*a[^c]*a[^d]*a[^e]*a[^f]*!",
        "a*a*a*a*a*b",
        "(" * 200 + "a" + ")" * 200,
    ],
)
def test_what_only_looks_harmless_is_refused(pattern: str) -> None:
    assert slow_part(pattern) is not None


@pytest.mark.parametrize("pattern", ["f\\(?x\\)?", "\\p{L}{2}", "[]a]+", "a)b", "(", "[a"])
def test_odd_spellings_are_read(pattern: str) -> None:
    assert slow_part(pattern) is None


def test_a_longer_text_is_one_for_fewer_steps() -> None:
    assert longest_text("a*b", MOST_STEPS // 100) < longest_text("a*b") / 9
