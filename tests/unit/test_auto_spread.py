"""When a hot key of a join is spread, and over how many buckets."""

from __future__ import annotations

import pytest

from nilometer.database.auto_spread import LASTS, REST, HotKeyWatch, SpreadJoin
from nilometer.database.bucket_options import (
    RequestedBuckets,
    parting_of,
    read_requested,
    requested_options,
)
from nilometer.database.spread import Spread
from nilometer.errors import InputError, SqlError
from nilometer.sql.catalog import Statistics
from nilometer.sql.ddl.nodes import CreateQuery
from nilometer.sql.plan.parting import Parting
from nilometer.sql.statements import read_one
from tests.unit.test_spread_joins import PAIRS, hot


def spread(rows: tuple[int, ...], key_rows: int, *streams: str) -> Spread:
    """Rows by bucket in a minute, and those of a key."""
    return Spread(streams or ("A", "B"), rows, "k = 7", key_rows, 60.0)


BUSY = (1_000_000, 10_000, 10_000, 10_000)
EIGHT = (400_000, *(50_000,) * 7)


@pytest.mark.parametrize(
    ("join", "measured", "parts"),
    [
        (SpreadJoin("A", 1), spread(BUSY, 900_000), 4),
        (SpreadJoin("A", 1), spread(EIGHT, 300_000), 4),
        (SpreadJoin("A", 1), spread((300_000, *(70_000,) * 7), 160_000), 2),
        (SpreadJoin("A", 2), spread(EIGHT, 300_000), 4),
        (SpreadJoin("A", 4), spread(EIGHT, 300_000), 8),
        (SpreadJoin("A", 8), spread(EIGHT, 300_000), None),
        (SpreadJoin("A", 1), spread((100_000, *(0,) * 6), 90_000), 7),
        (SpreadJoin("A", 1), spread((10_000, 100, 100, 100), 9_000), None),
        (SpreadJoin("A", 1), spread(BUSY, 300_000), None),
        (SpreadJoin("A", 1), spread((260_000, 250_000, 250_000, 250_000), 250_000), None),
        (SpreadJoin("A", 1), spread(BUSY, 900_000, "stage 1"), None),
        (SpreadJoin("A", 1), spread(BUSY, 900_000, "C", "D"), None),
        (SpreadJoin("A", 1), spread((1_000_000,), 900_000), None),
    ],
)
def test_over_how_many_buckets(join: SpreadJoin, measured: Spread, parts: int | None) -> None:
    assert join.more_parts([measured]) == parts


def test_a_key_must_be_hot_for_a_minute_and_then_there_is_a_rest() -> None:
    watch, second = HotKeyWatch(), 1_000_000
    assert not watch.is_due(0, is_hot=True)
    assert not watch.is_due(LASTS - second, is_hot=True)
    assert not watch.is_due(LASTS, is_hot=False)
    assert not watch.is_due(LASTS + second, is_hot=True)
    assert not watch.is_due(2 * LASTS, is_hot=True)
    assert watch.is_due(2 * LASTS + second, is_hot=True)
    due = [now for now in range(3 * LASTS, 3 * REST, second) if watch.is_due(now, is_hot=True)]
    assert due == [2 * LASTS + second + REST, 2 * LASTS + second + 2 * REST]


def test_what_helps_is_one_statement() -> None:
    hot_now = [spread(BUSY, 900_000)]
    assert SpreadJoin("A", 1).remedy("q", hot_now) == (
        "ALTER QUERY q SET (spread = 4) shares it among 4 buckets"
    )
    assert "ALTER QUERY `my q` SET" in str(SpreadJoin("A", 1).remedy("my q", hot_now))
    statement = SpreadJoin("A", 1, is_alterable=False).remedy("q", hot_now)
    assert statement == (
        "DROP QUERY q, and CREATE QUERY q WITH (spread = 4) AS … shares it among 4 buckets"
    )
    assert SpreadJoin("A", 1, by_itself=True).remedy("q", hot_now) == (
        "the database spreads it automatically, at most every ten minutes"
    )
    assert SpreadJoin("A", 4).remedy("q", hot_now) is None


def asked(options: str) -> RequestedBuckets:
    read = read_one(f"CREATE QUERY q WITH ({options}) AS SELECT 1")
    assert isinstance(read, CreateQuery)
    return read_requested(read.options)


def test_options_are_read() -> None:
    assert asked("buckets = 8, spread = 4") == RequestedBuckets(8, 4)
    assert asked("spread = 'auto', spread_stream = 'A'") == RequestedBuckets(
        by_itself=True, stream="A"
    )
    assert asked("spread = AUTO") == RequestedBuckets(by_itself=True)
    assert asked("engine = 'own'").is_nothing
    for wrong in ("spread = 0", "spread = 1025", "spread = 'some'", "buckets = 'auto'"):
        with pytest.raises(SqlError, match="cannot be"):
            asked(wrong)


def test_options_are_kept() -> None:
    db = hot()

    def after(before: dict[str, object], options: str) -> dict[str, object]:
        return requested_options(before, asked(options), lambda: db.plan(PAIRS))

    chosen = after({"buckets": 8}, "spread = 'auto'")
    assert parting_of(chosen) == Parting("A", 1)
    assert "spread" not in after({"buckets": 8}, "buckets = 4")
    db.create_stream(
        "B", db.sql("SELECT k, v, ts FROM B").slice(0, 9), time="ts", statistics=Statistics(9.0)
    )
    further = requested_options(
        chosen, RequestedBuckets(spread=4, by_itself=True), lambda: db.plan(PAIRS)
    )
    assert parting_of(further) == Parting("B", 4), "it has most rows by now"
    assert parting_of(after(further, "spread = 2")) == Parting("B", 2)
    named = after(chosen, "spread = 1, spread_stream = 'a'")
    assert parting_of(after(named, "spread = 2")) == Parting("A", 2)
    assert parting_of(after(further, "spread_stream = 'A'")) == Parting("A", 4)
    with pytest.raises(InputError, match="but no rows are spread"):
        after({"buckets": 8}, "spread_stream = 'A'")
