"""All table functions by name; each module has its own in FUNCTION."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nilometer.extras import require_packages

if TYPE_CHECKING:
    from nilometer.mining.table_function import TableFunction


class FunctionKind(StrEnum):
    """What a function does with rows, see `table_function`."""

    ROWS = "rows"
    FOLLOWS = "follows"
    ANSWERS = "answers"


MODULES: Final = MappingProxyType(
    {
        "ACCUMULATE": "nilometer.mining.accumulate",
        "CLASSIFY": "nilometer.mining.classify",
        "CLUSTERS": "nilometer.mining.clusters",
        "LINES": "nilometer.mining.lines",
        "MATCHES": "nilometer.mining.matches",
        "MOTIFS": "nilometer.mining.motifs",
        "PATTERNS": "nilometer.mining.patterns",
        "PEAKS": "nilometer.mining.peaks",
        "PERIODS": "nilometer.mining.periods",
        "SEQUENCES": "nilometer.mining.sequences",
    }
)


@cache
def find_function(name: str) -> TableFunction:
    """The function with an upper-case name; raises an error if its packages are missing."""
    function: TableFunction = import_module(MODULES[name]).FUNCTION
    require_packages(name, "mining", function.needs)
    return function


def kind_of(name: str) -> FunctionKind:
    """The kind of a function."""
    function = find_function(name)
    if hasattr(function, "miner"):
        return FunctionKind.ANSWERS
    return FunctionKind.FOLLOWS if hasattr(function, "follower") else FunctionKind.ROWS
