"""How many generated inputs are tested: some in `make test`, all in `make soak`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import pytest
from hypothesis import settings

VARIABLE: Final = "NILOMETER_EXAMPLES"
"""The percentage to run of the number that a test asks for."""
USUAL: Final = 6
Item = TypeVar("Item")
_SETTINGS: Final = "_hypothesis_internal_use_settings"


def share_of(examples: int) -> int:
    """The share of a number of generated inputs, at least one."""
    return max(1, examples * int(os.environ.get(VARIABLE, USUAL)) // 100)


def some_of(items: Sequence[Item], one_of: int = 3) -> list[Item]:
    """Every n-th item in `make test`, all in `make soak`."""
    return list(items[:: 1 if share_of(100) == 100 else one_of])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests of generated inputs, and give those outside soak their share.

    Of tests with many cases, some are chosen.
    """
    left_out = [one for one, number in _cases(items) if not _is_chosen(one, number)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [one for one in items if one not in set(left_out)]
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


def _cases(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, int]]:
    """Tests with their numbers among the cases of one function."""
    counts: Counter[str] = Counter()
    for item in items:
        function = item.nodeid.partition("[")[0]
        yield item, counts[function]
        counts[function] += 1


def _is_chosen(item: pytest.Item, number: int) -> bool:
    """Whether a case is run: the first of every n, and all of them in `make soak`."""
    marker = item.get_closest_marker("one_of")
    return marker is None or share_of(100) == 100 or number % marker.args[0] == 0
