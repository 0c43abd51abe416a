"""Durations as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from nilometer.errors import DurationError
from nilometer.model.time import (
    EARLIEST,
    duration_words,
    format_duration,
    format_instant,
    parse_duration,
    parse_signed_duration,
)

EXAMPLES = "write a number and a unit, such as '10s', '0.8 seconds', '5 min' or '1h 30m'"


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("10s", 10_000_000),
        ("5 SECONDS", 5_000_000),
        ("INTERVAL '5' SECOND", 5_000_000),
        ("interval 2 minutes", 120_000_000),
        ("0.8 S", 800_000),
        (".5s", 500_000),
        ("1 HOUR", 3_600_000_000),
        ("1h 30m", 5_400_000_000),
        ("2 days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("250ms", 250_000),
        ("7 µs", 7),
        ("0s", 0),
        (timedelta(minutes=1), 60_000_000),
    ],
)
def test_readable_durations(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(
    "text", ["", "ten", "10", "s", "10 parsecs", "1h30", "10s!", "--3s", "1 2 s", "NaN s", "1e3s"]
)
def test_unreadable_durations(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == (
        f"cannot read a duration\n  detail: got {text!r}\n  hint: {EXAMPLES}"
    )


def test_a_number_without_a_unit_is_no_duration() -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(10)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"a duration must be text or a timedelta\n  detail: got 10 of type int\n  hint: {EXAMPLES}"
    )


@pytest.mark.parametrize("given", ["-10s", "INTERVAL '-10' SECOND", timedelta(seconds=-10)])
def test_a_window_is_not_negative(given: str | timedelta) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(given)
    assert str(caught.value) == (
        "a window cannot have a negative length\n"
        f"  detail: got {given!r}\n"
        "  hint: for a lower and an upper bound use nm.between(A, B, '-2s', '5s')"
    )


def test_nothing_is_shorter_than_a_microsecond() -> None:
    with pytest.raises(DurationError, match="a whole number of microseconds"):
        parse_duration("0.1us")


def test_nothing_is_longer_than_a_thousand_years() -> None:
    with pytest.raises(DurationError, match="may not exceed 1000 years"):
        parse_duration("99999999 weeks")


def test_bounds_may_be_negative() -> None:
    assert parse_signed_duration("-1.5s") == -1_500_000


@pytest.mark.parametrize("microseconds", [0, 1, -1, 999, 1000, 1_000_000, -90_000_000, 123_456])
def test_formatted_durations_are_read_back(microseconds: int) -> None:
    assert parse_signed_duration(format_duration(microseconds)) == microseconds
    assert parse_duration(duration_words(abs(microseconds))) == abs(microseconds)


def test_since_ever() -> None:
    assert format_instant(EARLIEST) == "1700-01-01 00:00:00.000000"
