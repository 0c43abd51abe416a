"""The errors of arithmetic."""

from __future__ import annotations

from nilometer.errors import PredicateError


def overflow() -> PredicateError:
    """The error about a number that its type cannot hold."""
    return PredicateError(
        "arithmetic overflow",
        hint="cast its parts to a wider type first, such as CAST(x AS DOUBLE)",
    )


def division_by_zero() -> PredicateError:
    """The error about a division by zero."""
    return PredicateError(
        "division by zero",
        hint="guard it: x <> 0 AND …, or CASE WHEN x <> 0 THEN … END",
    )
