"""Questions of analysts over captures, batch and streamed with a restart, beside DuckDB.

They need the captures that `NILOMETER_DATA` names, and are skipped without them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from nilometer.model.time import parse_duration
from nilometer_papers.experiments.experiment import SkippedError
from nilometer_papers.experiments.workloads.captures import captures_folder
from tests.change_oracle import canonical, is_same

FILE: Final = Path(__file__).parents[1] / "questions" / "captures.test"
STREAMS: Final = {
    "Power": """SELECT to_timestamp(unix_ts::DOUBLE) AS ts, V::DOUBLE AS V, I::DOUBLE AS I,
        P::BIGINT AS P FROM read_csv('{}/ampds_electricity_b1e.csv') LIMIT 4000""",
    "Flow": """SELECT to_timestamp("Time"::DOUBLE * 40) AS ts, Source AS source,
        Destination AS destination, Protocol AS protocol, "Length"::BIGINT AS length
        FROM read_csv('{}/maccdc2012_00016.csv') LIMIT 1500""",
    "Home": """SELECT strptime("Date" || ' ' || "Time AM/PM", '%m/%d/%Y %I:%M:%S %p')::TIMESTAMPTZ
        AS ts, Location AS location, SensorID AS sensor, Value AS value
        FROM read_csv('{}/mavlab_2003_march.csv', all_varchar = true)""",
}
TABLES: Final = {
    "Rooms": "SELECT location, floor::INT AS floor FROM (VALUES ('Dining Room', 1), "
    "('Living Room', 1), ('Studio D', 2), ('Attic', 3)) r(location, floor)",
}
MACROS: Final = (
    "CREATE MACRO instant() AS getvariable('moment')",
    "CREATE MACRO past(t) AS t <= getvariable('moment')",
    "CREATE MACRO recent(t, s) AS t <= getvariable('moment') "
    "AND epoch_us(getvariable('moment')) - epoch_us(t) <= s::BIGINT * 1000000",
)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Question:
    """A statement, and what DuckDB is asked for the same rows at some instants."""

    statement: str
    plain: str
    instants: tuple[int, ...]
    """So long after the first row of its stream, in microseconds; none if results are appended."""


def read_questions() -> list[Question]:
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    questions = []
    for record in "\n".join(lines).split("\n\n"):
        if not record.strip():
            continue
        head, statement, _, plain = record.strip().splitlines()
        times = head.removeprefix("question").strip().removeprefix("at").split(",")
        instants = tuple(parse_duration(one.strip()) for one in times if one.strip())
        questions.append(Question(statement, plain, instants))
    return questions


@dataclass(frozen=True)
class Captures:
    judge: duckdb.DuckDBPyConnection
    rows: dict[str, pa.Table]

    def database(self) -> LocalDatabase:
        db = LocalDatabase()
        for name in STREAMS:
            db.create_stream(name, self.rows[name], time="ts")
        for name in TABLES:
            db.create_table(name, self.rows[name])
        return db

    def first(self, question: Question) -> datetime:
        """The time of the first row that a question can be about."""
        name = next(name for name in STREAMS if f" {name}" in question.statement)
        first: datetime = self.judge.execute(f"SELECT min(ts) FROM {name}").fetchall()[0][0]
        return first

    def ask(self, question: Question, at: int | None = None) -> Counter[Row]:
        if at is not None:
            microseconds = int(self.first(question).timestamp() * 1e6) + at
            self.judge.execute(f"SET VARIABLE moment = make_timestamptz({microseconds})")
        return Counter(
            canonical(map(plain_value, row))
            for row in self.judge.execute(question.plain).fetchall()
        )


def plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.timestamp() * 1e6)
    if isinstance(value, list):
        return tuple(sorted(value, key=repr))
    return value


@pytest.fixture(scope="module")
def captures() -> Captures:
    try:
        folder = captures_folder()
    except SkippedError as error:
        pytest.skip(str(error))
    judge = duckdb.connect()
    judge.execute("SET TimeZone = 'UTC'; SET default_null_order = 'nulls_first'")
    rows = {}
    for name, query in {**STREAMS, **TABLES}.items():
        judge.execute(f"CREATE TABLE {name} AS {query.format(folder)}")
        rows[name] = judge.sql(f"SELECT * FROM {name}").to_arrow_table()
    for macro in MACROS:
        judge.execute(macro)
    return Captures(judge, rows)


def rows_of(table: pa.Table) -> list[Row]:
    columns = [[plain_value(one) for one in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def held_at(changes: list[Row], at: int) -> Counter[Row]:
    held: Counter[Row] = Counter()
    for *row, time, diff in changes:
        if time <= at:
            held[canonical(row)] += diff
    return +held


def appended(table: pa.Table) -> Counter[Row]:
    return Counter(canonical(row[:-1]) for row in rows_of(table))


def streamed(captures: Captures, question: Question) -> pa.Table:
    """What three micro-batches and the end of all streams bring, with a restart between them."""
    query, parts = captures.database().query(question.statement), []
    for number in range(3):
        given = {}
        for name in STREAMS:
            rows = captures.rows[name].sort_by("ts").combine_chunks().to_batches()[0]
            size = -(-len(rows) // 3)
            given[name] = rows.slice(number * size, size)
        parts.append(query.feed(given))
        query.restart()
    return pa.concat_tables(parts)


QUESTIONS = read_questions()


@pytest.mark.one_of(3)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.statement[:70])
def test_the_answer_is_what_duckdb_says(captures: Captures, question: Question) -> None:
    answer = captures.database().sql(question.statement)
    parts = streamed(captures, question)
    if not question.instants:
        right = captures.ask(question)
        assert is_same(appended(answer), right)
        assert right, "a question that nothing answers"
        assert not appended(parts) - appended(answer)
        return
    changes, early = rows_of(answer), rows_of(parts)
    for at in question.instants:
        instant = round(captures.first(question).timestamp() * 1e6) + at
        right = captures.ask(question, at)
        assert is_same(held_at(changes, instant), right), f"{at} us after the first row"
        assert is_same(held_at(early, instant), right), f"streamed, {at} us after the first row"


def test_there_are_many_questions() -> None:
    assert len(QUESTIONS) >= 100
