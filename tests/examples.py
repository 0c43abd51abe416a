"""How many generated inputs a test is given: some in `make test`, all in `make soak`."""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import settings

VARIABLE: Final = "NILOMETER_EXAMPLES"
"""The share, in percent, of the number that a test asks for."""
USUAL: Final = 10
_SETTINGS: Final = "_hypothesis_internal_use_settings"


def share_of(examples: int) -> int:
    """So many of a number of generated inputs, and one at least."""
    return max(1, examples * int(os.environ.get(VARIABLE, USUAL)) // 100)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of generated inputs, and give those that are not for soak their share."""
    done: set[int] = set()
    for item in items:
        test = getattr(item, "obj", None)
        if not getattr(test, "is_hypothesis_test", False):
            continue
        item.add_marker(pytest.mark.generated)
        test = getattr(test, "__func__", test)
        if item.get_closest_marker("soak") is None and id(test) not in done:
            done.add(id(test))
            asked = getattr(test, _SETTINGS, None) or settings()
            given = settings(asked, max_examples=share_of(asked.max_examples))
            setattr(test, _SETTINGS, given)
