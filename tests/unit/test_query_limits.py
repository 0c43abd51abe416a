"""Limits of queries: how they are written, refused and shown."""

from __future__ import annotations

import pytest

from nilometer.database.limits import read_limits, shown_limits, usual_for
from nilometer.database.query_status import OnError, QueryLimits
from nilometer.errors import NilometerError, SqlError
from nilometer.sql.ddl.nodes import CreateQuery
from nilometer.sql.statements import read_one


def limits(options: str, before: QueryLimits | None = None) -> QueryLimits:
    read = read_one(f"CREATE QUERY q WITH ({options}) AS SELECT 1")
    assert isinstance(read, CreateQuery)
    return read_limits(read.options, before or QueryLimits())


def test_limits_are_read_over_those_that_hold_otherwise() -> None:
    assert limits("results = '1GB', state = '1.5 kb', history = '2 days'") == QueryLimits(
        1 << 30, 1536, 2 * 86_400_000_000
    )
    before = QueryLimits(results=5, state=6)
    assert limits("state = 7", before) == QueryLimits(results=5, state=7)
    assert limits("results = none, history = 1 HOUR", before) == QueryLimits(
        state=6, history=3_600_000_000
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "results = 'much'",
            "option results cannot be used\n"
            "  line 1, column 22:\n"
            "    CREATE QUERY q WITH (results = 'much') AS SELECT 1\n"
            "                         ^^^^^^^^^^^^^^^^\n"
            "  detail: cannot read a size\n"
            "  hint: write a number and a unit, such as '64MB' or '1.5 GB'",
        ),
        (
            "state = 0",
            "option state must be greater than zero\n"
            "  line 1, column 22:\n"
            "    CREATE QUERY q WITH (state = 0) AS SELECT 1\n"
            "                         ^^^^^^^^^\n"
            "  hint: write state = none for no limit",
        ),
        (
            "results = '1GB', memory = '1GB'",
            "a query has no option memory\n"
            "  line 1, column 39:\n"
            "    CREATE QUERY q WITH (results = '1GB', memory = '1GB') AS SELECT 1\n"
            "                                          ^^^^^^^^^^^^^^\n"
            "  hint: choose among results, state, history, shed, on_error, engine, shed_by, "
            "buckets, spread, spread_stream",
        ),
    ],
)
def test_what_cannot_be_a_limit(options: str, said: str) -> None:
    with pytest.raises(SqlError) as refused:
        limits(options)
    assert str(refused.value) == said


def test_limits_are_shown_as_they_are_written() -> None:
    given = QueryLimits(1 << 30, 200 << 20, 86_400_000_000)
    shown = shown_limits(given)
    assert shown == "results = '1 GB', state = '200 MB', history = '86400s'"
    assert limits(shown) == given
    assert shown_limits(QueryLimits()) is None


def test_changes_are_kept_for_a_day_unless_something_else_is_said() -> None:
    day = 86_400_000_000
    assert usual_for("append", QueryLimits(results=5)) == QueryLimits(results=5)
    assert usual_for("changelog", QueryLimits(results=5)) == QueryLimits(results=5, history=day)
    assert usual_for("changelog", QueryLimits(history=7)) == QueryLimits(history=7)
    assert limits("history = none", QueryLimits(history=day)) == QueryLimits()


def test_what_becomes_of_rows_that_cannot_be_computed() -> None:
    stop = limits("on_error = 'stop'")
    assert stop == QueryLimits(on_error=OnError.STOP)
    assert shown_limits(stop) == "on_error = 'stop'"
    assert limits("on_error = SKIP", stop) == QueryLimits(on_error=OnError.SKIP)
    with pytest.raises(NilometerError, match="option on_error cannot be explode") as error:
        limits("on_error = 'explode'")
    assert "'skip' to leave out" in str(error.value)


def test_which_rows_are_shed() -> None:
    shed = limits("shed = '1 000 000', shed_by = 'CASE WHEN k = ''a'' THEN 1 ELSE 0 END'")
    assert shed == QueryLimits(shed=1_000_000, shed_by="CASE WHEN k = 'a' THEN 1 ELSE 0 END")
    shown = shown_limits(shed)
    assert shown == "shed = '1000000', shed_by = 'CASE WHEN k = ''a'' THEN 1 ELSE 0 END'"
    assert limits(shown) == shed
    assert limits("shed = 5", shed).shed_by == shed.shed_by
    assert limits("shed = none", shed).shed is None
    assert limits("shed_by = none", shed) == QueryLimits(shed=1_000_000)
    with pytest.raises(NilometerError, match="is given without shed"):
        limits("shed_by = 'k'")
    with pytest.raises(NilometerError, match="option shed must be greater than zero"):
        limits("shed = 0")
    with pytest.raises(NilometerError, match="option shed cannot be used") as error:
        limits("shed = 'often'")
    assert "cannot read a number of rows" in str(error.value)


@pytest.mark.parametrize("number", ["0", "1025", "-1", "two", "1.5", "9" * 5000, "none"])
def test_what_cannot_be_a_number_of_buckets(number: str) -> None:
    with pytest.raises(NilometerError, match="option buckets cannot be") as error:
        limits(f"buckets = '{number}'")
    assert "write a number from 1 to 1024" in str(error.value)
