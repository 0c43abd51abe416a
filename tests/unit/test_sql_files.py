"""The SQL test files by the local engine: its answers, DuckDB's, and the file's, are one.

Statements that need Spark are left to tests/spark/test_sql_files.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from nilometer.errors import NilometerError, OnlySparkError
from nilometer.local.database import LocalDatabase
from nilometer.sql.statements import read_query
from tests.sql_bench import FUNCTIONS, Bench, BenchAnswer, compare
from tests.sql_files import Failure, Query, read_file

FILES: Final = sorted(Path(__file__).parents[1].joinpath("sql").glob("*.test"))
KINDS: Final = {"boolean": pa.bool_(), "int": pa.int32()}
ONLY_SPARK: Final = 0.2
"""No more than this share of a file's queries needs Spark."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers(file: Path) -> None:
    records = read_file(file)
    bench = Bench(records)
    db = database(bench)
    queries = [one for one in records if isinstance(one, Query)]
    problems, left = [], 0
    for query in queries:
        try:
            asked = db.prepare(read_query(query.statement))
        except OnlySparkError:
            left += 1
            continue
        answer = asked.run_all(db.tables)
        rows = list(zip(*(one.to_pylist() for one in answer.columns), strict=True))
        problems += compare(bench, query, BenchAnswer(answer.column_names, rows))
    assert not problems, "\n\n".join(problems)
    assert left <= ONLY_SPARK * len(queries)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_errors(file: Path) -> None:
    records = read_file(file)
    db = database(Bench(records))
    problems = []
    for one in records:
        if isinstance(one, Failure):
            try:
                db.prepare(read_query(one.statement))
                said = "no error"
            except OnlySparkError:
                continue
            except NilometerError as error:
                said = str(error)
            if said != one.text and "expected one statement" not in said:
                problems.append(f"{one.place}: expected the error\n{one.text}\n  but got\n{said}")
    assert not problems, "\n\n".join(problems)


def database(bench: Bench) -> LocalDatabase:
    """The streams, tables and functions of a file."""
    db = LocalDatabase()
    for record, rows in bench.relations:
        if record.time is None:
            db.create_table(record.name, rows)
        else:
            db.create_stream(record.name, rows, time=record.time)
    for one in bench.functions:
        db.create_function(one.name, FUNCTIONS[one.name], KINDS[one.returns])
    return db
