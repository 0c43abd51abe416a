"""Runs the examples in the docstrings of a module with what they need."""

from __future__ import annotations

import doctest
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def run_examples(module: ModuleType, needed: Mapping[str, Any]) -> int:
    """Run all of them, with these names; returns how many there are."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        if test.examples:
            test.globs.update(needed)
            runner.run(test)
    assert runner.failures == 0
    return runner.tries
