"""Queries about what is stored: the same answers as over all rows at once, whatever is left out
before it is read; and nothing but the given tables can be reached."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from nilometer.errors import NilometerError, SqlError, TimeLimitError, UnknownNameError
from nilometer.log import segment_chunks
from nilometer.log.block_cache import BlockCache
from nilometer.log.frame_format import FrameHeader
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.segment_reader import SegmentReader
from nilometer.log.writer import LogWriter
from nilometer.past.ask import ask, prepare_question
from nilometer.past.question import PastQuestion
from nilometer.past.sandbox import AnswerLimits, Sandbox, safe_functions
from nilometer.past.stored import ChangingTable, FixedTable, LogTable, StoredTable
from tests.examples import share_of

SCHEMA = pa.schema([(TIME, TIMESTAMP), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
BEGIN = 1_767_225_600_000_000
"""2026-01-01"""
SECOND = 1_000_000


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(512 << 20)
    yield made
    made.close()


def written(folder: Path, rows: list[dict[str, object]], schema: pa.Schema, size: int) -> LogReader:
    layout = LogLayout(schema, TIME, changes=DIFF in schema.names)
    writer = LogWriter.open(str(folder), layout, LogOptions(history=1 << 60))
    for start in range(0, len(rows), size):
        writer.append(pa.RecordBatch.from_pylist(rows[start : start + size], schema=schema))
    writer.close()
    return LogReader.open(str(folder))


def some_rows(chance: random.Random, count: int) -> list[dict[str, object]]:
    times = sorted(chance.randrange(0, 600) for _ in range(count))
    return [
        {
            TIME: BEGIN + second * SECOND,
            "k": chance.choice([None, *range(5)]),
            "v": chance.choice([None, float(chance.randrange(50))]),
            "s": chance.choice([None, "a", "b", "ä'"]),
        }
        for second in times
    ]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StoredTable]:
    chance, folder = random.Random(1), tmp_path_factory.mktemp("past")
    tables: dict[str, StoredTable] = {}
    for name in ("A", "B"):
        place = folder / name
        tables[name] = LogTable(str(place), written(place, some_rows(chance, 400), SCHEMA, 7))
    tables["T"] = FixedTable(pa.table({"k": [1, 2, 3], "label": ["one", "two", None]}))
    return tables


def run(
    sandbox: Sandbox, sql: str, tables: dict[str, StoredTable], dialect: str = "spark"
) -> tuple[pa.Table, PastQuestion]:
    tree = sqlglot.parse_one(sql, read=dialect)
    assert isinstance(tree, sqlglot.exp.Query)
    question = prepare_question(sandbox, tree, sql, tables)
    return ask(sandbox, question, tables), question


Oracle = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def oracle(tables: dict[str, StoredTable]) -> Iterator[Oracle]:
    """DuckDB over all rows, asked in its own words."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, one in tables.items():
            if isinstance(one, LogTable):
                frames = one.reader.read(one.reader.start)
                rows = pa.Table.from_batches([frame.rows for frame in frames])
            else:
                assert isinstance(one, FixedTable)
                rows = one.rows
            connection.register(name, rows)
        yield lambda sql: sorted(connection.execute(sql).fetchall(), key=repr)


def instant(chance: random.Random) -> str:
    second = chance.randrange(-60, 660)
    text = f"TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL '{second}' SECOND"
    return chance.choice([text, f"TIMESTAMPTZ '2026-01-01 00:{chance.randrange(10):02}:00+00'"])


def condition(chance: random.Random, alias: str) -> str:
    time = f"{alias}.{TIME}"
    kinds = [
        lambda: f"{time} {chance.choice(['<', '<=', '>', '>=', '='])} {instant(chance)}",
        lambda: f"{instant(chance)} {chance.choice(['<', '<=', '>', '>='])} {time}",
        lambda: f"{time} BETWEEN {instant(chance)} AND {instant(chance)}",
        lambda: f"NOT ({time} < {instant(chance)})",
        lambda: f"({time} < {instant(chance)} OR {alias}.k = 2)",
        lambda: f"{alias}.v > {chance.randrange(40)}",
        lambda: f"{alias}.s IS NOT NULL",
        lambda: f"{time} < now()",
    ]
    return chance.choice(kinds)()


def query(chance: random.Random) -> str:
    where = " AND ".join(condition(chance, "x") for _ in range(chance.randrange(1, 4)))
    forms = [
        f"SELECT x.k, x.v, x.s FROM A x WHERE {where}",
        f"SELECT * FROM A x WHERE {where}",
        f"SELECT COUNT(*), SUM(x.v) FROM A x WHERE {where}",
        f"SELECT x.k, COUNT(*), MAX(x.{TIME}) FROM A x WHERE {where} GROUP BY x.k",
        f"SELECT x.k, y.v FROM A x JOIN B y ON x.k = y.k AND x.{TIME} = y.{TIME} WHERE {where}",
        f"SELECT x.k, y.v FROM A x LEFT JOIN B y ON x.{TIME} = y.{TIME} "
        f"WHERE {where} AND {condition(chance, 'y')}",
        f"SELECT x.k, y.v FROM A x FULL JOIN B y ON x.{TIME} = y.{TIME} AND x.k = y.k "
        f"WHERE {where}",
        f"SELECT x.k, y.v FROM B y RIGHT JOIN A x ON x.{TIME} = y.{TIME} "
        f"WHERE {condition(chance, 'y')} AND {where}",
        f"SELECT y.k, x.v FROM B y LEFT JOIN A x ON x.{TIME} = y.{TIME} AND ({where})",
        f"SELECT x.v, T.label FROM A x, T WHERE x.k = T.k AND {where}",
        f"WITH w AS (SELECT k, v FROM A x WHERE {where}) SELECT k, AVG(v) FROM w GROUP BY k",
        f"SELECT k FROM A x WHERE {where} AND k IN (SELECT k FROM A WHERE v > 20)",
        f"SELECT k FROM A x WHERE {where} UNION ALL SELECT k FROM B x WHERE x.k = 1",
        f"SELECT x.k, LAG(x.v) OVER (PARTITION BY x.k ORDER BY x.{TIME}, x.v, x.s) FROM A x "
        f"WHERE {where}",
        f"SELECT (SELECT MAX(v) FROM A x WHERE {where}) FROM T",
        f"SELECT EXISTS (SELECT 1 FROM A x WHERE {where} AND x.k = T.k) FROM T",
    ]
    return chance.choice(forms)


@pytest.mark.generated
def test_what_is_left_out_does_not_matter(
    sandbox: Sandbox, tables: dict[str, StoredTable], oracle: Oracle
) -> None:
    for seed in range(share_of(300)):
        sql = query(random.Random(seed))
        answer, _ = run(sandbox, sql, tables, "duckdb")
        rows = sorted((tuple(row.values()) for row in _numbered(answer)), key=repr)
        wanted = [tuple(map(_plain, row)) for row in oracle(sql)]
        assert [tuple(map(_plain, row)) for row in rows] == wanted, (seed, sql)


def _numbered(rows: pa.Table) -> list[dict[str, object]]:
    numbered: list[dict[str, object]] = rows.rename_columns(
        [str(n) for n in range(rows.num_columns)]
    ).to_pylist()
    return numbered


def _plain(value: object) -> object:
    return str(value) if hasattr(value, "tzinfo") else value


def test_a_range_of_time_is_all_that_is_read(
    sandbox: Sandbox,
    tables: dict[str, StoredTable],
    oracle: Oracle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = tables["A"]
    assert isinstance(stored, LogTable)
    read: list[int] = []
    original = SegmentReader.rows

    def count(segment: SegmentReader, byte: int, header: FrameHeader) -> pa.RecordBatch:
        read.append(header.rows)
        return original(segment, byte, header)

    monkeypatch.setattr(SegmentReader, "rows", count)
    monkeypatch.setattr(segment_chunks, "ROWS", 20)
    for cache in ("_rows", "_spans"):
        monkeypatch.setattr(segment_chunks, cache, BlockCache())
    minute = "2026-01-01 00:05"
    sql = f"SELECT COUNT(*) FROM A WHERE {TIME} BETWEEN '{minute}:00' AND '{minute}:20'"
    answer, question = run(sandbox, sql, tables)
    assert question.tables["A"].bounds == (BEGIN + 300 * SECOND, BEGIN + 320 * SECOND)
    assert 0 < sum(read) < 60
    assert answer.to_pylist() == [{"count": oracle(sql)[0][0]}]


def test_only_columns_that_occur_are_read(sandbox: Sandbox, tables: dict[str, StoredTable]) -> None:
    _, question = run(sandbox, "SELECT k FROM A WHERE v > 3", tables)
    assert question.tables["A"].columns == {"k", "v"}
    for sql in (
        "SELECT * FROM A",
        "SELECT A FROM A",
        "SELECT COUNT(*) FROM A",
        "SELECT A.* FROM A",
    ):
        assert run(sandbox, sql, tables)[1].tables["A"].columns == set(SCHEMA.names)


CHANGES = pa.schema([("k", pa.int64()), (TIME, TIMESTAMP), (DIFF, pa.int64())])


def test_an_answer_is_known_as_it_was(sandbox: Sandbox, tmp_path: Path) -> None:
    changes: list[dict[str, object]] = [
        {"k": 1, TIME: BEGIN, DIFF: 1},
        {"k": 2, TIME: BEGIN + SECOND, DIFF: 1},
        {"k": 1, TIME: BEGIN + 2 * SECOND, DIFF: -1},
        {"k": 2, TIME: BEGIN + 3 * SECOND, DIFF: 1},
    ]
    tables: dict[str, StoredTable] = {
        "Q": ChangingTable(str(tmp_path / "q"), written(tmp_path / "q", changes, CHANGES, 1))
    }

    def answer(sql: str) -> list[int]:
        return sorted(run(sandbox, sql, tables)[0].column("k").to_pylist())

    assert answer("SELECT k FROM Q") == [2, 2]
    assert answer("SELECT * FROM q FOR SYSTEM_TIME AS OF '2026-01-01 00:00:01'") == [1, 2]
    assert answer("SELECT x.k FROM q TIMESTAMP AS OF '2026-01-01 00:00:02.5' AS x") == [2]
    assert answer("SELECT q.k FROM q FOR SYSTEM_TIME AS OF '2025-01-01'") == []
    both = (
        "SELECT a.k FROM q FOR SYSTEM_TIME AS OF '2026-01-01 00:00:00' AS a "
        "UNION ALL SELECT b.k FROM q b"
    )
    assert answer(both) == [1, 2, 2]


def test_a_stream_is_known_as_it_was(
    sandbox: Sandbox, tables: dict[str, StoredTable], oracle: Oracle
) -> None:
    sql = "SELECT COUNT(*) FROM A FOR SYSTEM_TIME AS OF '2026-01-01 00:03:00'"
    wanted = oracle(f"SELECT COUNT(*) FROM A WHERE {TIME} <= '2026-01-01 00:03:00'")
    assert run(sandbox, sql, tables)[0].to_pylist() == [{"count": wanted[0][0]}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv_auto('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM "/etc/passwd"',
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_tables",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM tables",
        "SELECT getenv('HOME')",
        "SELECT current_setting('home_directory')",
        "SELECT getvariable('x')",
        "SELECT lpad('x', 2000000000, 'y')",
        "SELECT repeat('x', 2000000000)",
        "SELECT sleep_ms(100000)",
        "SELECT pg_sleep(100)",
        "SELECT write_log('x')",
        "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM A",
        "SELECT k FROM A WHERE EXISTS (SELECT * FROM read_blob('/etc/passwd'))",
        "SELECT k FROM A ORDER BY (SELECT COUNT(*) FROM glob('/*'))",
        "SELECT extract('day FROM now()), (SELECT content FROM read_text(''/etc/passwd'')), "
        "extract(day' FROM now())",
        "WITH A AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM A",
        "WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master",
        "WITH w AS (SELECT * FROM duckdb_tables), duckdb_tables AS (SELECT 1) SELECT * FROM w",
        "WITH RECURSIVE sqlite_master AS (SELECT name FROM sqlite_master UNION ALL "
        "SELECT name FROM sqlite_master) SELECT * FROM sqlite_master",
        "SELECT * FROM A, LATERAL (SELECT * FROM read_text('/etc/passwd'))",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('A')",
    ],
)
@pytest.mark.parametrize("dialect", ["spark", "postgres", "duckdb"])
def test_nothing_else_can_be_reached(
    sandbox: Sandbox, tables: dict[str, StoredTable], sql: str, dialect: str
) -> None:
    with pytest.raises((NilometerError, sqlglot.errors.SqlglotError)):
        run(sandbox, sql, tables, dialect)


def test_a_name_of_with_is_known_after_it(sandbox: Sandbox, tables: dict[str, StoredTable]) -> None:
    count, _ = run(sandbox, "SELECT COUNT(*) AS n FROM A", tables)
    for sql in (
        "WITH A AS (SELECT k FROM A) SELECT COUNT(*) AS n FROM A",
        "WITH w AS (SELECT k FROM A), A AS (SELECT k FROM w) SELECT COUNT(*) AS n FROM A",
        "WITH w AS (WITH A AS (SELECT k FROM A) SELECT k FROM A) SELECT COUNT(*) AS n FROM w",
    ):
        assert run(sandbox, sql, tables)[0] == count, sql
    sql = "WITH RECURSIVE A AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM A WHERE n < 5) SELECT"
    assert run(sandbox, f"{sql} MAX(n) AS n FROM A", tables)[0].to_pylist() == [{"n": 5}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM (SHOW ALL TABLES)",
        "SELECT * FROM (DESCRIBE A)",
        "SELECT CAST(k AS getenv('HOME')) FROM A",
        "SELECT CAST(k AS system.main.getenv('HOME')) FROM A",
        "SELECT CAST(k AS system.main.varchar) FROM A",
        "COPY (SELECT 1) TO '/tmp/x'",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "SET threads = 64",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; SELECT 2",
        "PRAGMA database_list",
        "SELECT * FROM A; DROP TABLE A",
        "SELECT",
    ],
)
def test_only_one_query_passes(sandbox: Sandbox, text: str) -> None:
    with pytest.raises(SqlError):
        sandbox.require_safe(text, ["A"])


def test_types_are_those_of_duckdb(sandbox: Sandbox) -> None:
    for kind in (
        *("INT", "DECIMAL(10, 2)", "DOUBLE PRECISION", "VARCHAR(10)", "BYTEA", "JSON", "UUID"),
        *("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "INTERVAL", "STRUCT(a INT, b VARCHAR[])"),
        *("MAP(INT, VARCHAR)", "INT[3]", "ROW(a INT)", "ENUM('a', 'b')", "UNION(a INT)"),
    ):
        sandbox.require_safe(f"SELECT CAST(NULL AS {kind}), TRY_CAST(NULL AS {kind})", [])


def test_every_function_is_known_to_be_harmless_or_is_refused(sandbox: Sandbox) -> None:
    """A new DuckDB may have new functions: they are refused until somebody has looked at them."""
    with duckdb.connect() as connection:
        result = connection.execute("SELECT DISTINCT function_name FROM duckdb_functions()")
        known = {str(row[0]).lower() for row in result.fetchall()}
    refused = {"read_text", "read_blob", "glob", "getvariable", "write_log", "sleep_ms", "lpad"}
    assert not refused & safe_functions()
    others = [one for one in known - safe_functions() if one.isidentifier() and one[0] != "_"]
    for name in random.Random(1).sample(sorted(others), 40):
        with pytest.raises(NilometerError):
            sandbox.require_safe(f"SELECT {name}(1)", [])


def test_a_question_ends_in_time(sandbox: Sandbox) -> None:
    sql = "SELECT COUNT(*) FROM range(100000000) a, range(100000) b"
    sandbox.require_safe(sql, [])
    with pytest.raises(TimeLimitError):
        sandbox.run(sql, {}, AnswerLimits(1, seconds=0.3))
    assert sandbox.value("1 + 1") == 2


def test_errors_name_what_is_wrong(sandbox: Sandbox, tables: dict[str, StoredTable]) -> None:
    with pytest.raises(UnknownNameError, match="there is no stream, table or query AA"):
        run(sandbox, "SELECT * FROM AA", tables)
    with pytest.raises(SqlError, match="no function no_such for stored data"):
        run(sandbox, "SELECT no_such(k) FROM A", tables)
    with pytest.raises(UnknownNameError, match="there is no column kk") as unknown:
        run(sandbox, "SELECT v,\n  kk FROM A", tables)
    assert unknown.value.place is not None
    assert (unknown.value.place.line, unknown.value.place.column) == (2, 3)
    with pytest.raises(SqlError):
        run(sandbox, "SELECT v + s FROM A", tables)
    with pytest.raises(SqlError, match="cannot read the instant"):
        run(sandbox, "SELECT * FROM A FOR SYSTEM_TIME AS OF 'x'", tables)
