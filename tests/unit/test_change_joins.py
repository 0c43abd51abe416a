"""A plan for one number of buckets becomes one for another, without being planned again."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.engine.plan import make_plan
from nilometer.sql.explain.explain_plan import explain_plan
from nilometer.sql.physical.stages import cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan, joins_of
from nilometer.sql.rules.change_joins import in_buckets
from tests.change_data import change_data
from tests.change_queries import change_cases
from tests.unit.test_generated_changes import database
from tests.unit.test_spread_joins import hot

CASES = int(os.environ.get("NILOMETER_CHANGE_CASES", "1500"))
STATEMENTS = (
    "SELECT k, v FROM A WHERE v > 3",
    "SELECT A.k, B.v FROM A, B WINDOW(A, B) = 3 SECONDS WHERE A.k = B.k",
    "SELECT A.k, B.v FROM A, B WINDOW(A, B) = 3 SECONDS WHERE A.v < B.v",
    "SELECT A.k, T.name FROM A, T WHERE A.k = T.k",
    "SELECT A.k, B.v FROM A [PARTITION BY k ROWS 2], B WINDOW(A, B) = 3 SECONDS WHERE A.k = B.k",
    "SELECT k FROM A UNION ALL SELECT A.k FROM A, B WINDOW(A, B) = 3 SECONDS WHERE A.k = B.k",
    "SELECT k, COUNT(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k",
)


def check(made: Plan, other: Plan, buckets: int) -> None:
    """The plan `other`, for so many buckets, is what becomes of `made`."""
    parted = in_buckets(made, buckets)
    assert parted.buckets == other.buckets == buckets
    assert explain_plan(parted) == explain_plan(other)
    for join, same in zip(joins_of(parted), joins_of(other), strict=True):
        assert (join.buckets, join.routing) == (same.buckets, same.routing)
        assert (join.orders, join.loads) == (same.orders, same.loads)
    if isinstance(parted, ChangesPlan):
        assert isinstance(other, ChangesPlan)
        routings = [
            [one.stage.routing for one in cut_into_stages(plan).stages] for plan in (parted, other)
        ]
        assert routings[0] == routings[1]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_plan_is_moved_to_other_buckets(statement: str) -> None:
    one, four = hot(1).plan(statement), hot(4).plan(statement)
    check(one, four, 4)
    check(four, one, 1)
    narrow = make_plan(in_buckets(four, 1), {"T": hot().tables["T"]})
    assert narrow.description == make_plan(one, {"T": hot().tables["T"]}).description


@settings(max_examples=CASES // 5)
@given(st.data())
def test_any_answer_that_changes_is_moved_to_other_buckets(data: st.DataObject) -> None:
    rows, case = data.draw(change_data()), data.draw(change_cases())
    one, six = database(rows, 1).plan(case.sql), database(rows, 6).plan(case.sql)
    check(one, six, 6)
    check(six, one, 1)
