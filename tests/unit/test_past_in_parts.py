"""Questions that are asked in parts: the same answers as when they are asked as a whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot

from nilometer.errors import SqlError
from nilometer.log.layout import TIME, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.spans import gathered, spans_of, stored_bytes
from nilometer.log.writer import LogWriter
from nilometer.past.ask import ask, prepare_question
from nilometer.past.in_parts import PartedQuestion, ask_in_parts
from nilometer.past.part_forms import NotInPartsError
from nilometer.past.part_trees import PARTS
from nilometer.past.question import PastQuestion
from nilometer.past.sandbox import Sandbox
from nilometer.past.stored import FixedTable, LogTable, StoredTable
from tests.examples import share_of
from tests.past_questions import BEGIN, SCHEMA, SECOND, large_question, require_alike, some_rows

Tables = dict[str, StoredTable]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(512 << 20)
    yield made
    made.close()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    chance, folder = random.Random(1), tmp_path_factory.mktemp("past")
    layout = LogLayout(SCHEMA, TIME)
    tables: Tables = {}
    for name in ("A", "B"):
        place = str(folder / name)
        writer = LogWriter.open(place, layout, LogOptions(history=1 << 60, segment=1 << 14))
        rows = some_rows(chance, 900)
        for start in range(0, len(rows), 7):
            writer.append(pa.RecordBatch.from_pylist(rows[start : start + 7], schema=SCHEMA))
        if name == "A":
            writer.pack()
        writer.close()
        tables[name] = LogTable(place, LogReader.open(place))
    tables["T"] = FixedTable(pa.table({"k": [1, 2, 3], "label": ["one", "two", None]}))
    return tables


def asked(sandbox: Sandbox, tables: Tables, sql: str, dialect: str = "duckdb") -> PastQuestion:
    tree = sqlglot.parse_one(sql, read=dialect)
    assert isinstance(tree, sqlglot.exp.Query)
    return prepare_question(sandbox, tree, sql, tables)


def parted(
    sandbox: Sandbox, tables: Tables, question: PastQuestion, most_rows: int | None = None
) -> PartedQuestion:
    names = {name: use.table for name, use in question.tables.items()}
    empty = {name: tables[one].schema.empty_table() for name, one in names.items()}
    return ask_in_parts(sandbox, question, "A", empty, most_rows)


def answer_in_parts(
    sandbox: Sandbox, tables: Tables, question: PastQuestion, made: PartedQuestion, parts: int
) -> pa.Table:
    """What tasks do, one after the other."""
    whole, use = tables["A"], question.tables["A"]
    assert isinstance(whole, LogTable)
    results = [made.schema.empty_table()]
    for span in gathered(whole.spans(use), parts):
        part = LogTable(whole.location, whole.reader, (span.start, span.end))
        others = {n: tables[n].read(question.tables[n]) for n in made.part_tables}
        rows = sandbox.run(made.part, {**others, "A": part.read(use)})
        results.append(rows.rename_columns(made.schema.names))
    others = {n: tables[n].read(question.tables[n]) for n in made.whole_tables}
    return sandbox.run(made.whole, {**others, PARTS: pa.concat_tables(results)})


@pytest.mark.generated
def test_parts_answer_what_the_whole_answers(sandbox: Sandbox, tables: Tables) -> None:
    split = 0
    for seed in range(share_of(400)):
        sql = large_question(random.Random(seed))
        question = asked(sandbox, tables, sql)
        wanted = ask(sandbox, question, tables)
        try:
            made = parted(sandbox, tables, question)
        except NotInPartsError:
            continue
        split += 1
        require_alike(answer_in_parts(sandbox, tables, question, made, 1 + seed % 5), wanted, sql)
    assert split > share_of(400) * 0.5


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT median(v) AS m FROM A", "needs all rows of a group together"),
        ("SELECT COUNT(DISTINCT k) AS n FROM A", "needs all rows of a group together"),
        ("SELECT arg_max(v, k) AS m FROM A", "other rows|all rows of a group"),
        ("SELECT geomean(v) AS m FROM A", "other rows|all rows of a group"),
        ("SELECT count_star() AS m FROM A", "other rows|all rows of a group"),
        ("SELECT k, random() AS r FROM A", "depends on other rows or on the clock"),
        ("SELECT k FROM A WHERE _time < now()", "or on the clock"),
        ("SELECT k FROM A WHERE _time < localtimestamp", "or on the clock"),
        ('SELECT k FROM A WHERE _time < "localtimestamp"', "or on the clock"),
        ("SELECT k FROM A WHERE _time < current_timestamp", "or on the clock"),
        ("SELECT COUNT(*) AS n FROM A WHERE _time < current_date", "or on the clock"),
        ("SELECT k, SUM(v) + epoch(today()) AS s FROM A GROUP BY k", "or on the clock"),
        ("SELECT MAX(age(_time::TIMESTAMP)) AS m FROM A", "or on the clock"),
        ("SELECT current_localtimestamp() AS t, COUNT(*) AS n FROM A", "or on the clock"),
        ("SELECT A.v FROM T ASOF JOIN A ON T.k >= A.k", "ASOF JOIN"),
        ("SELECT A.v FROM A POSITIONAL JOIN T", "POSITIONAL JOIN"),
        ("SELECT T.k FROM T SEMI JOIN A x USING (k)", "need not come from the large table"),
        ("SELECT COLUMNS('k|s'), COUNT(*) AS n FROM A GROUP BY ALL", "a list of expressions"),
        ("SELECT COLUMNS('k|s'), COUNT(*) AS n FROM A GROUP BY k, s", "without naming each"),
        ("SELECT T.k FROM T LEFT JOIN A JOIN B ON TRUE ON TRUE", "plain table"),
        ("SELECT T.k FROM T LEFT JOIN (A CROSS JOIN B) ON TRUE", "in a condition"),
        ("SELECT SUM(v) OVER () AS s FROM A", "needs all rows together"),
        ("SELECT k FROM A TABLESAMPLE 10%", "needs all rows together"),
        ("SELECT k, v FROM A QUALIFY row_number() OVER () = 1", "needs all rows together"),
        ("SELECT DISTINCT ON (k) k, v FROM A", "DISTINCT ON"),
        ("SELECT T.k FROM T LEFT JOIN A USING (k)", "need not come from the large table"),
        ("SELECT T.k FROM A RIGHT JOIN T USING (k)", "need not come from the large table"),
        ("SELECT T.k FROM A FULL JOIN T USING (k)", "need not come from the large table"),
        ("SELECT x.k FROM A x, A y", "more than once"),
        ("SELECT k FROM T WHERE k IN (SELECT k FROM A)", "in a condition"),
        ("SELECT k, lag(v) OVER () AS l FROM (SELECT k, v FROM A)", "needs all rows together"),
        ("SELECT s, COUNT(*) AS n FROM A GROUP BY ROLLUP (s)", "a list of expressions"),
        ("SELECT COUNT(*) AS n FROM A HAVING (SELECT MAX(k) FROM T) > 1", "a subquery next to"),
        ("SELECT k FROM A LIMIT (SELECT 3)", "plain numbers"),
        ("SELECT any_value(k) AS k FROM A", "needs all rows of a group together"),
    ],
)
def test_what_cannot_be_split_is_not(sandbox: Sandbox, tables: Tables, sql: str, why: str) -> None:
    question = asked(sandbox, tables, sql)
    with pytest.raises(NotInPartsError, match=why):
        parted(sandbox, tables, question)


def test_of_rows_only_those_that_are_wanted_are_gathered(sandbox: Sandbox, tables: Tables) -> None:
    question = asked(sandbox, tables, "SELECT k FROM A")
    assert "LIMIT 11" in parted(sandbox, tables, question, 11).part
    paged = asked(sandbox, tables, "SELECT k FROM A ORDER BY v LIMIT 20 OFFSET 5")
    made = parted(sandbox, tables, paged, 11)
    assert made.part.endswith("LIMIT 16")
    grouped = asked(sandbox, tables, "SELECT k, COUNT(*) AS n FROM A GROUP BY k")
    assert "LIMIT" not in parted(sandbox, tables, grouped, 11).part


def test_spans_hold_every_row_once(tables: Tables) -> None:
    for name in ("A", "B"):
        table = tables[name]
        assert isinstance(table, LogTable)
        wanted = [one for rows in table.reader.batches() for one in rows.to_pylist()]
        for parts in (1, 2, 3, 100):
            spans = gathered(spans_of(table.location), parts)
            assert len(spans) <= parts
            numbers = [
                one
                for span in spans
                for rows in table.reader.batches(span=(span.start, span.end))
                for one in rows.to_pylist()
            ]
            assert numbers == wanted


def test_spans_hold_the_same_rows_when_files_are_packed_meanwhile(tmp_path: Path) -> None:
    options = LogOptions(history=1 << 60, segment=1 << 12)
    writer = LogWriter.open(str(tmp_path), LogLayout(SCHEMA, TIME), options)
    rows = some_rows(random.Random(2), 400)
    for start in range(0, len(rows), 20):
        writer.append(pa.RecordBatch.from_pylist(rows[start : start + 20], schema=SCHEMA))
    spans = gathered(spans_of(str(tmp_path)), 3)
    assert len(spans) == 3
    reader = LogReader.open(str(tmp_path))
    wanted = [one for batch in reader.batches() for one in batch.to_pylist()]
    writer.pack()
    writer.close()
    numbers = [
        one
        for span in spans
        for batch in reader.batches(span=(span.start, span.end))
        for one in batch.to_pylist()
    ]
    assert numbers == wanted


def test_a_range_of_time_has_fewer_bytes(tables: Tables) -> None:
    table = tables["A"]
    assert isinstance(table, LogTable)
    everything = stored_bytes(table.location)
    late = (BEGIN + 590 * SECOND, None)
    assert 0 < sum(one.bytes for one in spans_of(table.location, late)) < everything
    assert sum(one.bytes for one in spans_of(table.location)) == everything


def test_hostile_text_is_refused_before_it_is_split(sandbox: Sandbox, tables: Tables) -> None:
    for sql in (
        "SELECT COUNT(*) AS n FROM A, read_text('/etc/passwd')",
        "SELECT (SELECT content FROM read_text('/etc/passwd')) AS c, COUNT(*) AS n FROM A",
        'SELECT COUNT(*) AS n FROM "parts of the answer"',
    ):
        with pytest.raises(SqlError):
            asked(sandbox, tables, sql)


def test_fields_of_a_struct_are_not_columns_of_the_same_name(sandbox: Sandbox) -> None:
    rows = pa.table({"k": [1, 1], "v": [2.0, 3.0], "r": [{"v": 5.0}, {"v": 7.0}]})
    tables: Tables = {"A": FixedTable(rows)}
    sql = "SELECT A.k, SUM(v) AS a, SUM(A.v) AS b, SUM(r.v) AS c FROM A GROUP BY k"
    made = parted(sandbox, tables, asked(sandbox, tables, sql))
    partial = sandbox.run(made.part, {"A": rows})
    assert partial.num_columns == 3  # the key, and two sums
    whole = sandbox.run(made.whole, {PARTS: partial.rename_columns(made.schema.names)})
    assert whole.to_pylist() == [{"k": 1, "a": 5.0, "b": 5.0, "c": 12.0}]
