"""`nm.snapshot`: the answer of a changelog at one instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, TimestampType

from nilometer.errors import InputError
from nilometer.model.time import read_instant
from nilometer.spark.left_out import last_time

COPIES: Final = "_copies"

_KEPT: Final = (("_time", TimestampType()), ("_diff", LongType()))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BROKEN: Final = (
    "the changelog retracts a row that it never emitted: part of it is missing or duplicated"
)


def snapshot(changelog: DataFrame, at: str | datetime | None = None) -> DataFrame:
    """The answer at one instant, as a DataFrame without `_time` and `_diff`.

    `at` is text such as '2026-01-01 12:00:00.5' or a datetime, in UTC unless it has a time zone.
    Without it, a batch answer returned by db.sql is taken when the last row of its streams has
    arrived, as for a streaming one; other changelogs, such as stored ones, after all their
    changes. A row that holds three times is returned three times. Rows are equal as in Spark's
    GROUP BY.

    >>> nm.snapshot(changelog, at="2026-01-01 00:00:00")  # doctest: +SKIP
    """
    require_changelog(changelog)
    if changelog.isStreaming:
        raise InputError(
            "a streaming changelog has no answer at one instant",
            hint="nm.keep_answer(changelog, path) keeps its latest answer as a table",
        )
    numbered = number_columns(changelog)
    instant = last_time(changelog) if at is None else read_instant(at)
    if instant is not None:
        numbered = numbered.where(f"_time <= timestamp_micros({instant})")
    counted = count_copies(numbered.selectExpr("* EXCEPT (_time, _diff)", f"_diff AS {COPIES}"))
    return repeat_rows(counted, changelog.columns[:-2])


def require_changelog(frame: DataFrame) -> None:
    """Refuse a DataFrame that does not end in the columns of a changelog."""
    last = [(field.name, field.dataType) for field in frame.schema.fields[-2:]]
    if last != list(_KEPT):
        raise InputError(
            "this is not a changelog",
            detail="its last columns must be _time TIMESTAMP and _diff BIGINT, got "
            + (", ".join(f"{name} {kind.simpleString().upper()}" for name, kind in last) or "none"),
            hint="the answer of a statement with EMIT CHANGES is one",
        )


def number_columns(changelog: DataFrame) -> DataFrame:
    """The changelog with columns c0, c1, … before `_time` and `_diff`: names may be duplicated."""
    names = [f"c{i}" for i in range(len(changelog.columns) - 2)]
    return changelog.toDF(*names, "_time", "_diff")


def count_copies(rows: DataFrame) -> DataFrame:
    """Each row once, with its number of copies; rows without copies are left out."""
    columns = [f"`{name}`" for name in rows.columns[:-1]]
    total = rows.groupBy(*columns).agg({COPIES: "sum"}).toDF(*rows.columns)
    checked = f"CASE WHEN {COPIES} < 0 THEN raise_error('{_BROKEN}') ELSE {COPIES} END"
    return total.selectExpr(*columns, f"{checked} AS {COPIES}").where(f"{COPIES} <> 0")


def repeat_rows(counted: DataFrame, names: list[str]) -> DataFrame:
    """Each row repeated for its copies, with columns of these names."""
    columns = [f"`{name}`" for name in counted.columns[:-1]]
    repeated = counted.selectExpr(
        *columns, f"explode(array_repeat(true, CAST({COPIES} AS INT))) AS {COPIES}"
    )
    return repeated.selectExpr(*columns).toDF(*names)


def instant_of(microseconds: int) -> datetime:
    """An instant in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)
