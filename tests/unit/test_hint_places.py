"""Hints that cannot be read, or that stand where nobody would read them, are refused in place."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.errors import SqlError
from nilometer.local.database import LocalDatabase

JOIN = "A.k FROM A, B WINDOW = 1 SECOND WHERE A.k = B.k"


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    made = LocalDatabase()
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    for name in "AB":
        made.create_stream(name, pa.table({"ts": times, "k": ["x", "y"]}), time="ts")
    return made


def refused(db: LocalDatabase, statement: str) -> tuple[str, str]:
    """What is said, and of which part of the statement."""
    with pytest.raises(SqlError) as caught:
        db.sql(statement)
    place = caught.value.place
    assert place is not None
    return caught.value.message, statement[place.start : place.end]


@pytest.mark.parametrize(
    "statement",
    [
        f"/*+ MW */ SELECT {JOIN}",
        f"EXPLAIN /*+ MW */ SELECT {JOIN}",
        f"SELECT DISTINCT /*+ MW */ {JOIN}",
        f"SELECT /*+ BEW */ /*+ MW */ {JOIN}",
        f"SELECT /* a join */ -- /*+ BEW */\n A.k /*+ MW */, {JOIN}",
        f"SELECT {JOIN} /*+ MW */",
    ],
)
def test_a_hint_that_nobody_would_read_is_refused(db: LocalDatabase, statement: str) -> None:
    assert refused(db, statement) == ("a hint is not allowed here", "/*+ MW */")


@pytest.mark.parametrize("hint", ["/*+ */", "/*+*/", "/*+ M'W */", "/*+ MW; BEW */"])
def test_a_hint_that_cannot_be_read_is_underlined(db: LocalDatabase, hint: str) -> None:
    message, place = refused(db, f"SELECT {hint} {JOIN}")
    assert message.startswith("a hint must be a single name")
    assert place == hint


@pytest.mark.parametrize(
    "comment", ["/* + MW */", "--+ MW\n", "-- /*+ MW */\n", "/* not /*+ MW */ */", "'/*+ MW */' x,"]
)
def test_comments_and_texts_are_no_hints(db: LocalDatabase, comment: str) -> None:
    keys = db.sql(f"SELECT A.ts, {comment} {JOIN}")["k"].to_pylist()
    assert sorted(keys) == ["x", "y"]
