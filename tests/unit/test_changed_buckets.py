"""The number of buckets changes between micro-batches: every change of the answer comes once."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.local.run_changes import LocalChanges
from nilometer.operators.stage import Execution
from tests.change_data import ChangeData, change_data, splits
from tests.change_oracle import changes_of, check_net, settled
from tests.change_queries import ChangeCase, change_cases
from tests.dealt_out import change_buckets
from tests.generated import check_generated
from tests.unit.test_generated_changes import check_same, database, plan_of

CASES = int(os.environ.get("NILOMETER_CHANGE_CASES", "1500"))
PARTS = 3
NUMBERS = (1, 2, 3, 4, 6)


def check(draw: st.DataObject) -> None:
    rows, case = draw.draw(change_data()), draw.draw(change_cases())
    batches = draw.draw(splits(rows, least=2, most=5))
    plan = plan_of(database(rows), case)
    due = settled(
        changes_of(LocalChanges(plan, Execution.TPA).run_all(database(rows).tables)), case, rows
    )
    execution = draw.draw(st.sampled_from(Execution))
    number = draw.draw(st.sampled_from(NUMBERS))
    query = LocalChanges(plan_of(database(rows, number), case), execution, {"T": rows.static()})
    tables = []
    for parts in batches:
        number = draw.draw(st.sampled_from(NUMBERS))
        try:
            query = change_buckets(query, plan_of(database(rows, number), case), execution)
        except InputError as error:
            REFUSED[str(error.message) + str(error.detail)] = (
                REFUSED.get(str(error.message) + str(error.detail), 0) + 1
            )
        else:
            REFUSED["ok"] = REFUSED.get("ok", 0) + 1
        tables.append(query.feed({name: rows.batch(name, *part) for name, part in parts.items()}))
    found = changes_of(pa.concat_tables(tables))
    check_net(found)
    check_same(found, due, execution, case)


REFUSED = {}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_change_comes_once(part: int) -> None:
    try:
        check_generated(check, part, CASES // 5 // PARTS)
    finally:
        print(REFUSED)
