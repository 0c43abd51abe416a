"""Changes at multiples of a length of time."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.paced import Paced, PacedSpec
from tests.changes import (
    Change,
    Story,
    as_batch,
    as_changes,
    assert_net,
    held,
    in_order,
    run,
    stories,
)

LONG = (pa.int64(),)


def process(operator: Paced, changes: list[Change], frontier: int) -> list[Change]:
    return as_changes(operator.process([as_batch(changes, LONG)], frontier))


@settings(max_examples=250, deadline=None)
@given(stories(1, first=-9), st.sampled_from([1, 2, 5, 7, 100]))
def test_the_answer_at_a_multiple_holds_until_the_next(story: Story, every: int) -> None:
    spec = PacedSpec(every, story.types)
    changes = run(spec, story)
    assert_net(changes)
    assert all(time % every == 0 for _, time, _ in changes)
    for multiple in range(-10 // every * every, 140, every):
        assert held(changes, multiple) == held(story.inputs[0], multiple)
    assert in_order(changes) == in_order(run(spec, story, [FOREVER]))


@settings(max_examples=150, deadline=None)
@given(stories(1), st.sampled_from([2, 5, 7]))
def test_changes_come_as_soon_as_the_frontier_has_passed_their_multiple(
    story: Story, every: int
) -> None:
    spec = PacedSpec(every, story.types)
    whole = run(spec, story, [FOREVER])
    for frontier in story.frontiers[:-1]:
        before = [change for change in whole if change[1] < frontier]
        assert in_order(run(spec, story, [frontier])) == in_order(before)


def test_a_change_at_a_multiple_waits_until_the_frontier_is_later() -> None:
    operator = PacedSpec(10, LONG).start(MemoryStore())
    assert process(operator, [((1,), 10, 1)], 10 + 1) == [((1,), 10, 1)]
    assert process(operator, [((2,), 11, 1)], 20) == []
    assert process(operator, [((3,), 20, 1), ((2,), 20, -1)], 21) == [((3,), 20, 1)]


def test_only_net_changes_are_kept() -> None:
    store = MemoryStore()
    operator = PacedSpec(1000, LONG).start(store)
    for second in range(1, 51):
        assert process(operator, [((1,), second, 1), ((2,), second, 1)], second + 1) == []
        assert process(operator, [((1,), second, -1)], second + 1) == []
        assert sum(ref.rows for ref in operator.stored[0].refs) <= 2
    assert process(operator, [], FOREVER) == [((2,), 1000, 50)]
    assert store.chunks == {}


@pytest.mark.parametrize("every", [7, 3_600_000_000])
def test_what_holds_since_ever_stays_where_it_is(every: int) -> None:
    operator = PacedSpec(every, LONG).start(MemoryStore())
    assert process(operator, [((1,), EARLIEST, 2)], EARLIEST) == [((1,), EARLIEST, 2)]
    assert Counter(process(operator, [((1,), -1, -1)], FOREVER)) == {((1,), 0, -1): 1}
