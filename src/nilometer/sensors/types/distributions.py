"""Columns of random values, described by text such as `temperature=normal(20, 3)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from nilometer.kernels.read_times import read_times
from nilometer.sensors.types.text_cells import cell_reader

Description: TypeAlias = tuple[str, tuple[str, ...]]
"""The name of a distribution and its arguments."""
Values: TypeAlias = Callable[[np.random.Generator, int], Any]
"""Generates this many values."""
_PART: Final = re.compile(r"\s*(\w+)\s*=\s*(\w+)\s*\(([^()]*)\)\s*(?:,|$)")
_ARGUMENTS: Final = {
    "normal": (2, 2),
    "uniform": (2, 2),
    "walk": (2, 2),
    "choice": (1, 1000),
    "constant": (1, 1),
    "counter": (0, 2),
}
_HINT: Final = "write column=distribution(…), such as 'temperature=normal(20,3), id=choice(1,2)'"


def read_distributions(text: str) -> Mapping[str, Description]:
    """Distributions by column.

    >>> read_distributions("temperature=normal(20, 3), id=choice(1,2)")
    {'temperature': ('normal', ('20', '3')), 'id': ('choice', ('1', '2'))}
    """
    distributions: dict[str, Description] = {}
    place = 0
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            raise ValueError(_HINT)
        column, name, inner = part.groups()
        arguments = tuple(one.strip() for one in inner.split(",")) if inner.strip() else ()
        distributions[column] = (name.lower(), _checked(name.lower(), arguments))
        place = part.end()
    return distributions


def _checked(name: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    if name not in _ARGUMENTS:
        raise ValueError(f"{name} is not one of {', '.join(_ARGUMENTS)}")
    least, most = _ARGUMENTS[name]
    if not least <= len(arguments) <= most:
        raise ValueError(f"{name} takes {least if least == most else f'{least} to {most}'} values")
    if name not in ("choice", "constant"):
        for one in arguments:
            float(one)
    return arguments


def default_distribution(kind: pa.DataType) -> Description:
    """The distribution of a column that is not described."""
    if types.is_integer(kind):
        return "counter", ()
    if types.is_floating(kind) or types.is_decimal(kind):
        return "normal", ("0", "1")
    if types.is_boolean(kind):
        return "choice", ("true", "false")
    return "choice", ("a", "b", "c")


def value_maker(description: Description, kind: pa.DataType) -> Values:
    """A function that generates the next values of a column; walks and counters continue."""
    name, arguments = description
    if name in ("choice", "constant"):
        return _choice([cell_reader(pa.field(name, kind))(one) for one in arguments], kind)
    make = _numbers(name, *map(float, arguments))
    return lambda rng, count: _array(make(rng, count), kind)


def _numbers(name: str, *arguments: float) -> Values:
    if name == "normal":
        return lambda rng, count: rng.normal(arguments[0], arguments[1], count)
    if name == "uniform":
        return lambda rng, count: rng.uniform(arguments[0], arguments[1], count)
    if name == "walk":
        return _walk(*arguments)
    return _counter(*arguments)


def _choice(values: Sequence[Any], kind: pa.DataType) -> Values:
    array = pa.array(values)
    converted = read_times(array, None) if types.is_timestamp(kind) else array.cast(kind)
    return lambda rng, count: converted.take(pa.array(rng.integers(len(values), size=count)))


def _walk(start: float, step: float) -> Values:
    last = start

    def make(rng: np.random.Generator, count: int) -> Any:
        nonlocal last
        values = last + np.cumsum(rng.normal(0, step, count))
        last = float(values[-1]) if count else last
        return values

    return make


def _counter(start: float = 0, step: float = 1) -> Values:
    following = start

    def make(_: np.random.Generator, count: int) -> Any:
        nonlocal following
        values = following + step * np.arange(count)
        following += step * count
        return values

    return make


def _array(numbers: Any, kind: pa.DataType) -> pa.Array:
    if types.is_integer(kind):
        # A counter that has reached the end of its type starts again.
        return pa.array(np.rint(numbers).astype(np.int64)).cast(kind, safe=False)
    if types.is_decimal(kind):
        return pa.array(np.round(numbers, kind.scale)).cast(kind, safe=False)
    if types.is_string(kind):
        return pa.array([f"{one:g}" for one in numbers])
    if types.is_timestamp(kind):
        return read_times(pa.array(numbers), None)
    return pa.array(numbers).cast(kind)
