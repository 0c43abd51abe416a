"""Selection, projection, UNION ALL and netting of changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings

from nilometer.local.memory_store import MemoryStore
from nilometer.model.expressions import Argument, Binary, Constant, IsNull, Not, Operator
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import ChangeSpec
from nilometer.operators.compute import ComputeSpec, NetSpec, UnionAllSpec
from tests.changes import (
    Change,
    Story,
    as_batch,
    as_changes,
    assert_net,
    check,
    held,
    run,
    stories,
)

LONG, TEXT = pa.int64(), pa.string()
CHANGES: list[Change] = [
    ((1, "a"), 5, 2),
    ((None, "b"), 5, 1),
    ((1, "a"), 7, -2),
    ((3, None), 9, 1),
]


def process(spec: ChangeSpec, *inputs: list[Change]) -> list[Change]:
    operator = spec.start(MemoryStore())
    assert operator.snapshot() == {}
    operator.restore({})
    assert operator.stored == ()
    batches = [as_batch(changes, [LONG, TEXT]) for changes in inputs]
    return as_changes(operator.process(batches, FOREVER))


def test_rows_that_pass_and_what_is_computed_of_them() -> None:
    test = Binary(Operator.LESS, Argument(0), Constant(3))
    values = (Binary(Operator.PLUS, Argument(0), Constant(10)), Argument(1), Constant(None))
    spec = ComputeSpec(test, values, (LONG, TEXT, TEXT))
    assert process(spec, CHANGES) == [((11, "a", None), 5, 2), ((11, "a", None), 7, -2)]


def test_without_a_test_all_rows_pass() -> None:
    spec = ComputeSpec(None, (Argument(1),), (TEXT,))
    assert process(spec, CHANGES) == [((text,), time, diff) for (_, text), time, diff in CHANGES]


def test_nothing_in_or_nothing_passed_is_nothing_out() -> None:
    spec = ComputeSpec(IsNull(Argument(0)), (Argument(1), Constant(None)), (TEXT, LONG))
    for changes in ([], CHANGES[:1]):
        out = spec.start(MemoryStore()).process([as_batch(changes, [LONG, TEXT])], 3)
        assert len(out) == 0
        assert out.schema.types == [TEXT, LONG, LONG, LONG]


def test_columns_that_are_passed_on_are_not_copied() -> None:
    spec = ComputeSpec(Not(IsNull(Argument(1))), (Argument(1), Argument(0)), (TEXT, LONG))
    given_ = as_batch(CHANGES[:3], [LONG, TEXT])
    out = spec.start(MemoryStore()).process([given_], FOREVER)
    for place, source in ((0, 1), (1, 0), (2, 2), (3, 3)):
        assert (
            out.column(place).buffers()[-1].address == given_.column(source).buffers()[-1].address
        )


def test_no_columns_at_all_leave_the_counts() -> None:
    assert process(ComputeSpec(None, (), ()), CHANGES[:2]) == [((), 5, 2), ((), 5, 1)]


def test_union_all_has_the_changes_of_all_inputs() -> None:
    spec = UnionAllSpec((LONG, TEXT))
    assert process(spec, CHANGES[:2], [], CHANGES[2:]) == CHANGES
    assert process(spec, [], CHANGES) == CHANGES
    assert process(spec, [], []) == []


@settings(max_examples=150, deadline=None)
@given(stories(2))
def test_a_net_union_all_at_every_instant(story: Story) -> None:
    together = Story(story.types, (story.inputs[0] + story.inputs[1],), story.frontiers)

    def same(inputs: Any) -> Counter[Any]:
        return Counter(inputs[0])

    check(NetSpec(story.types), together, same)
    joined = run(UnionAllSpec(story.types), story)
    assert held(joined, 50) == held(together.inputs[0], 50)


def test_changes_that_cancel_are_not_given_out() -> None:
    changes: list[Change] = [
        ((1, "a"), 5, 2),
        ((1, "a"), 5, -2),
        ((2, "b"), 6, 1),
        ((2, "b"), 6, 1),
    ]
    net = process(NetSpec((LONG, TEXT)), changes)
    assert net == [((2, "b"), 6, 2)]
    assert_net(net)
