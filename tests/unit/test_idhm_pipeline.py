"""The application's SQL, run without Spark: it says what the operators say by themselves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.local.database import LocalDatabase
from nilometer.sql.ddl.nodes import CreateQuery, Insert
from nilometer.sql.statements import read_one
from nilometer_papers.idhm.declare import DETECTORS, QUERIES, Reach, statements
from nilometer_papers.idhm.knowledge_rows import knowledge_statements
from tests import idhm_pipeline as small


@pytest.fixture(scope="module")
def db() -> LocalDatabase:
    made = LocalDatabase()
    for name, rows in small.tables().items():
        made.create_table(name, rows)
    made.create_stream("Near", small.readings([1, 2]), time="at")
    made.create_stream("Remote", small.readings([3]), time="at")
    return made


@pytest.fixture(scope="module")
def verdicts(db: LocalDatabase) -> pa.Table:
    return db.sql(small.query("verdicts"))


@pytest.mark.parametrize("broker", [None, 1883])
def test_every_statement_is_read(broker: int | None) -> None:
    read = [read_one(text) for text in statements(Reach(8700, broker, "a secret"))]
    assert tuple(one.name for one in read if isinstance(one, CreateQuery)) == QUERIES


def test_knowledge_is_inserted_into_tables_that_are_there() -> None:
    inserts = [read_one(text) for text in knowledge_statements(["NaI", "NaI"], boxes=4)]
    rows: dict[str, int] = {}
    for one in inserts:
        assert isinstance(one, Insert)
        rows[one.table] = rows.get(one.table, 0) + len(one.rows)
    assert set(rows) == set(small.tables())
    assert rows["Library"] == 4 * 5


def test_verdicts_are_those_of_the_operators(verdicts: pa.Table) -> None:
    answer = small.verdicts_of(verdicts.to_pylist())
    assert answer == small.expected_verdicts()
    assert {verdict for _, verdict, _, _ in answer.values()} > {"more data"}


def test_spectra_add_up(verdicts: pa.Table) -> None:
    for row in verdicts.to_pylist():
        kind = DETECTORS[str(row["detector"])]
        bursts = range(1, row["burst"] + 1)
        counted = [small.counts_of(row["detector"], kind, row["box"], one) for one in bursts]
        assert row["counts"] == sum(counted).tolist()  # type: ignore[union-attr]


def test_detectors_are_fused_burst_by_burst(db: LocalDatabase, verdicts: pa.Table) -> None:
    db.create_stream("verdicts", verdicts, time="_time")
    fused = {(row["box"], row["burst"]): row for row in db.sql(small.query("fused")).to_pylist()}
    assert len(fused) == len(small.BOXES) * small.BURSTS
    expected = small.expected_verdicts()
    for (box, burst), row in fused.items():
        suspected = [expected[detector, box, burst][2] for detector in (1, 2, 3)]
        assert row["suspicion"] == pytest.approx(sum(suspected) / 3)
        assert row["exposure"] == burst * small.LIVE
        if len(set(suspected)) == 1:
            assert row["verdict"] == expected[1, box, burst][1]


def test_peaks_have_lines(db: LocalDatabase) -> None:
    peaks = db.sql(small.query("peaks")).to_pylist()
    assert {row["detector"] for row in peaks} == {1, 2, 3}
    matched = {row["line"] for row in peaks if row["box"] == 0 and row["burst"] == small.BURSTS}
    assert {"C 4.44", "H 2.22"} <= matched
