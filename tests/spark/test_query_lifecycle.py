"""Named queries on Spark: they fail and go on, reach limits, and run side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from nilometer.database.query_status import QueryLimits, QueryPhase
from nilometer.errors import InputError, NilometerError, SqlError
from nilometer.log.reader import LogReader
from nilometer.log.registrations import registrations
from nilometer.spark.idle_monitors import end_idle_monitors
from tests.patience import wait_for
from tests.python_processes import kill_python_processes
from tests.spark.log_harness import rows_of

ROWS = 3_000
TEXT = "SELECT k, v FROM A WHERE v >= 0 FROM START"


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        yield opened


def declare(db: nm.Database, folder: Path, rows: int = ROWS) -> Path:
    """A stream over a file that is followed, with some rows."""
    file = folder / "a.jsonl"
    write_rows(file, range(rows))
    db.execute(
        "CREATE STREAM A (k INT, v INT, HISTORY FOREVER) FROM file "
        f"WITH (address = '{file}', speed = 'max', follow = true)"
    )
    return file


def write_rows(file: Path, numbers: range) -> None:
    with file.open("a") as lines:
        lines.writelines(json.dumps({"k": n % 7, "v": n}) + "\n" for n in numbers)


def results(db: nm.Database, query: str) -> list[int]:
    return sorted(value for (value,) in rows_of(db.log_of(query), ["v"]))


def phase(db: nm.Database, query: str) -> QueryPhase:
    return db.query_status(query).phase


def test_a_query_whose_worker_is_killed_goes_on_with_every_result_once(
    db: nm.Database, tmp_path: Path
) -> None:
    file = declare(db, tmp_path)
    db.create_query("q", TEXT)
    wait_for(lambda: len(results(db, "q")) == ROWS)
    assert kill_python_processes() > 0
    write_rows(file, range(ROWS, 2 * ROWS))
    wait_for(lambda: len(results(db, "q")) >= 2 * ROWS)
    assert results(db, "q") == list(range(2 * ROWS))
    at_work = (QueryPhase.RUNNING, QueryPhase.STALLED)  # by now nothing may have come for long
    wait_for(lambda: phase(db, "q") in at_work)
    wait_for(lambda: db.query_status("q").result_rows == 2 * ROWS)
    health = [one for one in db.query_health("q") if "A" in one.streams]
    assert sum(one.streams["A"].rows for one in health) >= ROWS
    shown = db.execute("SHOW QUERIES").rows
    assert shown is not None
    assert shown.column("rows").to_pylist() == [2 * ROWS]


def test_a_limit_stops_one_query_alone_and_it_goes_on_when_there_is_more_room(
    db: nm.Database, tmp_path: Path
) -> None:
    file = declare(db, tmp_path)
    db.execute(f"CREATE QUERY small WITH (results = '30kB') AS {TEXT}")
    db.create_query("large", TEXT)
    count = ROWS
    while phase(db, "small") is not QueryPhase.FAILED:
        write_rows(file, range(count, count + ROWS))
        count += ROWS
        wait_for(
            lambda: (
                len(results(db, "large")) >= count  # noqa: B023
                and (phase(db, "small") is QueryPhase.FAILED or len(results(db, "small")) >= count)  # noqa: B023
            )
        )
    stopped = db.query_status("small")
    assert stopped.error is not None
    assert stopped.error.startswith("query small was stopped: its results have reached 30 kB")
    assert stopped.result_bytes <= 30 << 10
    assert len(results(db, "small")) <= count
    assert phase(db, "large") is QueryPhase.RUNNING
    write_rows(file, range(count, count + ROWS))
    db.execute("ALTER QUERY small SET (results = '1 GB')")
    assert db.execute("START QUERY small").message == "query small started"
    wait_for(lambda: len(results(db, "small")) >= count + ROWS)
    for name in ("small", "large"):
        wait_for(lambda: len(results(db, name)) >= count + ROWS)  # noqa: B023
        assert results(db, name) == list(range(count + ROWS))
    assert db.query_status("small").limits == QueryLimits(results=1 << 30)


def test_a_limit_on_state_stops_a_query(db: nm.Database, tmp_path: Path) -> None:
    declare(db, tmp_path)
    text = "SELECT X.v AS v FROM A X, A Y WINDOW = 1 HOUR WHERE X.v = Y.v FROM START"
    db.create_query("q", text, limits=QueryLimits(state=100))
    wait_for(lambda: phase(db, "q") is QueryPhase.FAILED)
    assert "its state has reached 100 bytes" in str(db.query_status("q").error)
    db.execute("ALTER QUERY q SET (state = none)")
    assert db.start_query("q")
    wait_for(lambda: len(results(db, "q")) == ROWS)
    assert results(db, "q") == list(range(ROWS))
    wait_for(lambda: (db.query_status("q").state_bytes or 0) > 100)


def test_queries_are_made_and_dropped_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    with nm.connect(spark, path=tmp_path / "plant", max_queries=5) as db:
        declare(db, tmp_path)
        with ThreadPoolExecutor(6) as threads:
            made = list(threads.map(lambda _: _made(db), range(6)))
        refused = [one for one in made if isinstance(one, NilometerError)]
        names = [one for one in made if isinstance(one, str)]
        assert [str(one.message) for one in refused] == ["no more queries can run: the limit is 5"]
        assert all(name.startswith("run_") for name in names)
        for name in names:
            wait_for(lambda: len(results(db, name)) >= ROWS)  # noqa: B023
            assert results(db, name) == list(range(ROWS))
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(db.drop_query, names[:2]))
        assert sorted(one.name for one in db.query_statuses()) == sorted(names[2:])
    with nm.connect(spark, path=tmp_path / "plant") as db:
        assert db.query_statuses() == []
        assert registrations(db.log_of("A")) == []
        with pytest.raises(InputError, match="there is no query"):
            db.drop_query(names[3])


def _made(db: nm.Database) -> str | NilometerError:
    try:
        return db.create_query(None, TEXT, temporary=True).name
    except NilometerError as error:
        return error


def test_queries_with_engines_of_their_own_share_the_cores(
    db: nm.Database, spark: SparkSession, tmp_path: Path
) -> None:
    declare(db, tmp_path, 10)
    for name in ("one", "two"):
        db.execute(f"CREATE QUERY {name} WITH (engine = 'own') AS {TEXT}")
    for name in ("one", "two"):
        wait_for(lambda: len(results(db, name)) == 10)  # noqa: B023
        wait_for(lambda: _behind(db, name) == 0)  # noqa: B023
    assert {_pool(spark, db, name) for name in ("one", "two")} == {"query 0", "query 1"}
    with pytest.raises(SqlError, match="where a query runs cannot be changed"):
        db.execute("ALTER QUERY one SET (engine = 'shared')")


def _behind(db: nm.Database, name: str) -> int | None:
    """How many rows a query has not read, as SHOW QUERIES tells."""
    shown = {one["name"]: one for one in db.execute("SHOW QUERIES").rows.to_pylist()}
    behind: int | None = shown[name]["rows_behind"]
    return behind


def _pool(spark: SparkSession, db: nm.Database, name: str) -> str:
    """The scheduler's pool in which the jobs of a query run."""
    handle = db.queries[name]
    assert isinstance(handle, StreamingQuery)
    context = spark.sparkContext._jsc.sc()
    done = []
    for job in context.statusTracker().getJobIdsForGroup(handle.runId):
        stages = context.statusStore().job(job).stageIds()
        for place in range(stages.size()):
            stage = context.statusStore().lastStageAttempt(stages.apply(place))
            if str(stage.status()) == "COMPLETE":  # one that waits or is left out has no pool yet
                done.append(str(stage.schedulingPool()))
    [pool] = set(done)
    return pool


def test_a_query_begins_with_what_comes_after_its_statement(db: nm.Database) -> None:
    """Not later, when Spark first looks: a client may have been told of the query by then."""
    made_up = "synthetic WITH (rate = 200, values = 'v=counter(0,1)')"
    db.execute(f"CREATE STREAM N (v INT) FROM {made_up}")
    db.execute("CREATE QUERY first AS SELECT v FROM N")
    wait_for(lambda: bool(results(db, "first")))
    db.execute("CREATE QUERY second AS SELECT v FROM N")
    end = LogReader.open(db.log_of("N")).end.row
    wait_for(lambda: bool(results(db, "second")))
    assert results(db, "second")[0] <= end


def test_queries_that_are_dropped_leave_no_threads_in_spark(
    db: nm.Database, spark: SparkSession, tmp_path: Path
) -> None:
    declare(db, tmp_path, rows=10)
    db.create_query("q", TEXT)
    wait_for(lambda: len(results(db, "q")) == 10)
    db.drop_query("q")
    assert end_idle_monitors(spark)
    wait_for(lambda: not end_idle_monitors(spark))


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[str]:
    """The name of Spark's setting, which a test may change."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    yield name
    assert before is not None
    spark.conf.set(name, before)


def test_queries_go_on_when_the_machine_has_another_number_of_cores(
    spark: SparkSession, partitions: str, tmp_path: Path
) -> None:
    """Joined rows of before and after are found, and groups are counted on."""
    rows = 300
    numbers = list(range(rows))
    with nm.connect(spark, path=tmp_path / "plant") as db:
        file = declare(db, tmp_path, rows)
        db.create_query(
            "pairs", "SELECT X.v AS v FROM A X, A Y WINDOW = 1 HOUR WHERE X.v = Y.v FROM START"
        )
        db.create_query(
            "counts", "SELECT k, COUNT(*) AS v FROM A [RANGE 1 HOUR] GROUP BY k FROM START"
        )
        wait_for(lambda: results(db, "pairs") == numbers)
        wait_for(lambda: newest_counts(db) == [rows // 7 + (k < rows % 7) for k in range(7)])
    for number in ("3", "1"):
        spark.conf.set(partitions, number)
        with nm.connect(spark, path=tmp_path / "plant") as db:
            assert sorted(db.resume()) == ["counts", "pairs"]
            write_rows(file, range(len(numbers), len(numbers) + rows))
            numbers = list(range(len(numbers) + rows))
            more = len(numbers)
            wait_for(lambda: results(db, "pairs") == numbers)  # noqa: B023
            wait_for(
                lambda: newest_counts(db) == [more // 7 + (k < more % 7) for k in range(7)]  # noqa: B023
            )
            assert db.query_status("pairs").error is None


def newest_counts(db: nm.Database) -> list[int]:
    """The answer of a query over groups, from its changes."""
    reader = LogReader.open(db.log_of("counts"))
    answer: dict[int, int] = {}
    for frame in reader.read(reader.start):
        for row in frame.rows.to_pylist():
            answer[row["k"]] = answer.get(row["k"], 0) + row["v"] * row["_diff"]
    return [answer[k] for k in sorted(answer)]


def test_new_queries_get_the_buckets_of_the_database(spark: SparkSession, tmp_path: Path) -> None:
    made = "CREATE QUERY {} WITH (engine = 'own'{}) AS " + TEXT
    with nm.connect(spark, path=tmp_path / "plant", buckets=3) as db:
        declare(db, tmp_path, rows=10)
        db.execute(made.format("first", ""))
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute(made.format("second", ""))
        db.execute(made.format("third", ", buckets = 1"))
        buckets = {one.name: one.buckets for one in db.query_statuses()}
        assert buckets == {"first": 3, "second": 3, "third": 1}
        plan = str(db.execute("EXPLAIN QUERY third").rows)
        assert "Engine: own" in plan
        assert ("Cores: " in plan) == (spark.sparkContext.defaultParallelism >= 2)
