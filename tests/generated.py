"""Checks on generated inputs, split into parts that are separate tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from tests.examples import share_of


def check_generated(
    check: Callable[[st.DataObject], None], part: int, examples: int, **how: Any
) -> None:
    """Check a share of the generated inputs: the same ones whenever the part is the same."""

    @seed(part)
    @settings(max_examples=share_of(examples), **how)
    @given(draw=st.data())
    def run(draw: st.DataObject) -> None:
        # The simplest input of all comes first, and in every part: it is left out.
        assume(draw.draw(st.integers(0, 1_000)) > 0)
        check(draw)

    run()
