"""All functions that are evaluated here, by their names in lower case; operators by their signs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nilometer.kernels.functions import (
    choices,
    digests,
    list_order,
    lists,
    numbers,
    patterns,
    texts,
    times,
)
from nilometer.kernels.functions.function import Function

FUNCTIONS: Final[Mapping[str, Function]] = {
    **choices.FUNCTIONS,
    **digests.FUNCTIONS,
    **list_order.FUNCTIONS,
    **lists.FUNCTIONS,
    **numbers.FUNCTIONS,
    **patterns.FUNCTIONS,
    **texts.FUNCTIONS,
    **times.FUNCTIONS,
}
