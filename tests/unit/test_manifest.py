"""What a checkpoint says of itself, and when a query may not go on with it."""

from __future__ import annotations

from typing import Any

import pytest

from nilometer.engine.same_query import FORMAT, PREDICATES, check_same_query
from nilometer.errors import CheckpointError

QUERY = {"streams": ["A", "B"], PREDICATES: ["A.k <> B.k", "NOT A.v IS NULL"]}


def manifest(**given: Any) -> dict[str, Any]:
    return {"format": FORMAT, "buckets": 2, "query": QUERY, "state": {}, **given}


def test_a_query_goes_on_with_its_own_checkpoint() -> None:
    check_same_query(manifest(), QUERY, 2)


def test_a_checkpoint_of_the_first_release_says_no_format() -> None:
    content = manifest()
    del content["format"]
    check_same_query(content, QUERY, 2)


def test_another_release_of_the_parser_may_write_predicates_otherwise() -> None:
    before = {**QUERY, PREDICATES: ["A.k != B.k", "not A.v IS NULL"]}
    check_same_query(manifest(query=before), QUERY, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"format": FORMAT + 1}, "another release"),
        ({"format": FORMAT - 1}, "another release"),
        ({"buckets": 3}, "with 3 buckets, not 2"),
        ({"query": {**QUERY, "streams": ["A", "C"]}}, "its streams differ"),
        ({"query": {**QUERY, PREDICATES: ["A.k = B.k", "NOT A.v IS NULL"]}}, "predicates differ"),
        ({"query": {**QUERY, PREDICATES: ["A.k <> B.k"]}}, "predicates differ"),
        ({"query": {**QUERY, PREDICATES: ["((", "NOT A.v IS NULL"]}}, "predicates differ"),
        ({"query": {"streams": ["A", "B"]}}, "predicates differ"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError) as error:
        check_same_query(manifest(**given), QUERY, 2)
    assert said in str(error.value)
