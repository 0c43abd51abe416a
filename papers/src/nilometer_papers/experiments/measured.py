"""Selects and summarizes measured rows."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.experiments.experiment import Row

Label = str | int | float


def select(rows: Sequence[Row], **labels: Label) -> list[Row]:
    """The rows that have these labels.

    >>> select([{"a": 1, "t": 2.0}, {"a": 2, "t": 3.0}], a=2)
    [{'a': 2, 't': 3.0}]
    """
    return [row for row in rows if all(row[name] == value for name, value in labels.items())]


def values(rows: Sequence[Row], column: str, **labels: Label) -> list[float]:
    """A column of the rows that have these labels, as numbers."""
    return [float(row[column]) for row in select(rows, **labels)]


def mean(rows: Sequence[Row], column: str, **labels: Label) -> float:
    """The mean of a column over the rows that have these labels."""
    numbers = values(rows, column, **labels)
    return sum(numbers) / len(numbers)


def distinct(rows: Sequence[Row], column: str) -> list[Label]:
    """The labels in a column, in order of first occurrence."""
    return list(dict.fromkeys(row[column] for row in rows))


def brief(number: float) -> str:
    """A number with three significant digits.

    >>> brief(0.01234), brief(12.345), brief(123456.0)
    ('0.0123', '12.3', '123000')
    """
    return f"{float(f'{number:.3g}'):.10g}"
