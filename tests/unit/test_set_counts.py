"""DISTINCT and the set operators against counting in plain Python, at every instant."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InternalError
from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators.change_specs import SetFunction
from nilometer.operators.set_counts import SetCountsSpec
from tests.changes import Story, as_batch, as_changes, check, run, stories

F = SetFunction


def naive(function: SetFunction, inputs: Sequence[Counter[Any]]) -> Counter[Any]:
    first, second = inputs[0], inputs[1] if len(inputs) > 1 else Counter()
    rows = set(first) | set(second)
    formulas = {
        F.DISTINCT: lambda s, r: min(1, s),
        F.UNION: lambda s, r: min(1, s + r),
        F.INTERSECT: lambda s, r: min(1, s, r),
        F.INTERSECT_ALL: min,
        F.EXCEPT: lambda s, r: int(s > 0 and r == 0),
        F.EXCEPT_ALL: lambda s, r: max(0, s - r),
        F.WITHOUT: lambda s, r: s if r == 0 else 0,
        F.WITH: lambda s, r: s if r > 0 else 0,
    }
    return Counter({row: formulas[function](first[row], second[row]) for row in rows})


@pytest.mark.parametrize("function", F)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_every_set_operator_at_every_instant(function: SetFunction, data: st.DataObject) -> None:
    story = data.draw(stories(1 if function is SetFunction.DISTINCT else 2))
    check(SetCountsSpec(function, story.types), story, lambda held: naive(function, held))


def test_rows_since_ever_are_counted_with_the_first_period() -> None:
    story = Story((pa.int64(),), ((((1,), EARLIEST, 2), ((1,), 5, -2)),), (EARLIEST, FOREVER))
    spec = SetCountsSpec(F.DISTINCT, story.types)
    operator = spec.start(MemoryStore())
    first = operator.process([as_batch(story.inputs[0][:1], story.types)], EARLIEST)
    assert as_changes(first) == [((1,), EARLIEST, 1)]
    assert run(spec, story) == [((1,), EARLIEST, 1), ((1,), 5, -1)]


@pytest.mark.parametrize("point", [0.0, {"x": 0.0, "y": [0.0]}])
def test_a_zero_has_no_sign(point: Any) -> None:
    negative = -0.0 if point == 0.0 else {"x": -0.0, "y": [-0.0]}
    types = (pa.array([point]).type,)
    story = Story(
        types, ((((negative,), 1, 1), ((point,), 2, 1), ((point,), 3, -2)),), (2, FOREVER)
    )
    shown = run(SetCountsSpec(F.DISTINCT, types), story)
    assert [str(change) for change in shown] == [str(((point,), 1, 1)), str(((point,), 3, -1))]


def test_rows_that_come_and_go_leave_nothing_behind() -> None:
    store = MemoryStore()
    operator = SetCountsSpec(F.EXCEPT, (pa.int64(),)).start(store)
    numbers = np.arange(1000)
    changes = [((int(n),), int(n), 1) for n in numbers]
    changes += [((int(n),), int(n) + 5, -1) for n in numbers]
    out = operator.process([as_batch(changes, [pa.int64()]), as_batch([], [pa.int64()])], 2000)
    assert len(out) == 2000
    assert store.chunks == {}


def test_a_count_below_zero_is_a_fault() -> None:
    operator = SetCountsSpec(F.DISTINCT, (pa.int64(),)).start(MemoryStore())
    changes = as_batch([((1,), 5, -1), ((1,), 6, 1)], [pa.int64()])
    with pytest.raises(InternalError, match="told to remove rows that are not there"):
        operator.process([changes], 10)


def test_specs_can_be_shipped() -> None:
    spec = SetCountsSpec(F.EXCEPT_ALL, (pa.int64(), pa.string()))
    assert pickle.loads(pickle.dumps(spec)) == spec
