"""All functions that are evaluated here, by lower-case name; operators by their symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nilometer.kernels.functions import (
    bits,
    choices,
    clock_times,
    digests,
    list_order,
    lists,
    maps,
    numbers,
    patterns,
    texts,
    time_units,
    times,
)
from nilometer.kernels.functions.function import Function

FUNCTIONS: Final[Mapping[str, Function]] = {
    **choices.FUNCTIONS,
    **clock_times.FUNCTIONS,
    **bits.FUNCTIONS,
    **digests.FUNCTIONS,
    **list_order.FUNCTIONS,
    **lists.FUNCTIONS,
    **maps.FUNCTIONS,
    **numbers.FUNCTIONS,
    **patterns.FUNCTIONS,
    **texts.FUNCTIONS,
    **time_units.FUNCTIONS,
    **times.FUNCTIONS,
}
