"""Many queries in one engine, on Spark: each fails alone, and whatever happens nothing is lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.database.query_status import QueryPhase
from nilometer.engine import bucket
from nilometer.errors import LogGapError, NilometerError, SqlError
from nilometer.local.answer_fold import AnswerFold
from nilometer.log.reader import LogReader
from nilometer.spark.hosted_query import HostedQuery
from tests.patience import wait_for
from tests.python_processes import kill_python_processes
from tests.spark.test_query_lifecycle import declare, phase, results, write_rows

GOOD = "SELECT k, v FROM A WHERE v % 3 = {n} FROM START"


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[nm.Database]:
    with nm.connect(spark, path=tmp_path / "plant") as opened:
        yield opened


def wait_for_results(db: nm.Database, name: str, wanted: list[int]) -> None:
    wait_for(lambda: len(results(db, name)) >= len(wanted))
    assert results(db, name) == wanted


def slowly(values: pd.Series) -> pd.Series:
    """Takes a second for each row, up to a quarter of a minute."""
    time.sleep(min(len(values), 13))
    return values


def test_bad_queries_do_not_hold_back_good_ones(db: nm.Database, tmp_path: Path) -> None:
    """One raises, one takes for ever, one has no room; the slow one goes on by itself."""
    file = declare(db, tmp_path, 30)
    db.create_function("slowly", slowly, "int")
    for number in range(6):
        db.execute(f"CREATE QUERY good{number} AS {GOOD.format(n=number % 3)}")
    db.execute(
        "CREATE QUERY bad WITH (on_error = 'stop') AS SELECT k, 10 / (v - 5) AS v FROM A FROM START"
    )
    db.execute("CREATE QUERY full WITH (results = '5 kB') AS SELECT k, v FROM A FROM START")
    db.execute("CREATE QUERY slow AS SELECT k, slowly(v) AS v FROM A FROM START")
    for part in range(1, 3):
        write_rows(file, range(60 * part - 30, 60 * part + 30))
        for number in range(6):
            wanted = [v for v in range(60 * part + 30) if v % 3 == number % 3]
            wait_for_results(db, f"good{number}", wanted)
    wait_for(lambda: phase(db, "bad") is QueryPhase.FAILED)
    assert "division by zero" in str(db.query_status("bad").error).lower()
    wait_for(lambda: phase(db, "full") is QueryPhase.FAILED)
    slow = db.queries["slow"]
    assert isinstance(slow, HostedQuery)
    wait_for(lambda: slow.engine.is_apart(slow.query))
    wait_for_results(db, "slow", list(range(150)))
    wait_for(lambda: phase(db, "slow") is QueryPhase.RUNNING)
    db.execute("DROP QUERY slow")
    db.execute("ALTER QUERY full SET (results = none)")
    db.execute("START QUERY full")
    wait_for_results(db, "full", list(range(150)))


def test_a_query_that_is_too_far_behind_sheds_what_matters_least(
    db: nm.Database, tmp_path: Path
) -> None:
    file = declare(db, tmp_path, 30)
    with pytest.raises(SqlError, match="there is no column w"):
        db.execute("CREATE QUERY q WITH (shed = 10, shed_by = 'w') AS SELECT k, v FROM A")
    with pytest.raises(NilometerError, match="only queries of the shared engine can shed rows"):
        db.execute("CREATE QUERY q WITH (shed = 10, engine = 'own') AS SELECT k, v FROM A")
    db.execute("CREATE QUERY everything AS SELECT k, v FROM A FROM START")
    wait_for_results(db, "everything", list(range(30)))
    db.execute("CREATE QUERY q WITH (shed = 10, shed_by = 'v') AS SELECT k, v FROM A FROM START")
    wait_for_results(db, "q", list(range(20, 30)))
    assert shed_rows(db) == 20
    with pytest.raises(SqlError, match="there is no column w"):
        db.execute("ALTER QUERY q SET (shed_by = 'w')")
    db.execute("ALTER QUERY q SET (shed = none)")
    write_rows(file, range(30, 90))
    wait_for_results(db, "q", list(range(20, 90)))
    assert shed_rows(db) == 20


def shed_rows(db: nm.Database) -> int:
    samples: list[Any] = []
    wait_for(lambda: samples.extend(db.query_health("q")) or samples)
    return int(samples[-1].shed_rows)


def test_an_answer_that_changes_goes_on_beyond_what_its_limit_would_hold(
    db: nm.Database, tmp_path: Path
) -> None:
    file = declare(db, tmp_path, 30)
    db.execute(
        "CREATE QUERY counts WITH (results = '24 kB', history = '1 second') AS "
        "SELECT k, COUNT(*) AS n FROM A [UNBOUNDED] GROUP BY k EMIT CHANGES FROM START"
    )
    wait_for(lambda: db.query_status("counts").result_rows > 0)
    reader = LogReader.open(db.log_of("counts"))
    old, count = reader.end, 30
    while reader.base is None or reader.end.row < 500:
        assert phase(db, "counts") is not QueryPhase.FAILED, db.query_status("counts").error
        before = reader.end.row
        write_rows(file, range(count, count + 90))
        count += 90
        wait_for(lambda: reader.end.row > before)  # noqa: B023
    wait_for(lambda: answer(reader) == {k: len(range(k, count, 7)) for k in range(7)})
    assert db.query_status("counts").result_bytes <= 24 << 10
    with pytest.raises(LogGapError) as gap:
        list(reader.read(old))
    assert added_up(reader, gap.value.oldest) == answer(reader)


def test_queries_with_the_same_sub_plan_share_state_and_say_so(
    db: nm.Database, tmp_path: Path
) -> None:
    file = declare(db, tmp_path, 30)
    counts = "SELECT k, {} AS x FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 1 SECOND] GROUP BY k)"
    text = f"CREATE QUERY {{}} AS {counts} AS S EMIT CHANGES FROM START"
    db.execute(text.format("plain", "n + 1"))
    wait_for(lambda: db.query_status("plain").result_rows > 0)
    db.execute(
        text.format("bad", "10 / (n - n)").replace(
            "AS SELECT", "WITH (on_error = 'stop') AS SELECT", 1
        )
    )
    db.execute(text.format("other", "n * n"))
    rows = 30

    def is_shared() -> bool:
        nonlocal rows
        write_rows(file, range(rows, rows + 30))
        rows += 30
        return db.query_status("plain").shares_with == ("other",)

    wait_for(is_shared)
    shown = {one["name"]: one["shares_with"] for one in db.execute("SHOW QUERIES").rows.to_pylist()}
    assert shown == {"plain": "other", "other": "plain", "bad": None}
    assert "State: shared with plain" in str(db.execute("EXPLAIN QUERY other").rows.to_pylist())
    wait_for(lambda: phase(db, "bad") is QueryPhase.FAILED)
    db.execute("DROP QUERY plain")
    wait_for(lambda: db.query_status("other").shares_with == ())
    assert phase(db, "other") is QueryPhase.RUNNING


def answer(reader: LogReader) -> dict[int, int]:
    rows = AnswerFold(reader, 1 << 30).now(100).rows.to_pylist()
    return {one["k"]: one["n"] for one in rows}


def added_up(reader: LogReader, start: Any) -> dict[int, int]:
    """What one who begins with the base has at the instant of the answer."""
    instant = (reader.watermark or 0) - 1
    counts: Counter[tuple[int, int]] = Counter()
    for frame in reader.read(start):
        times = frame.rows.column("_time").cast("int64").to_pylist()
        for one, at in zip(frame.rows.to_pylist(), times, strict=True):
            counts[one["k"], one["n"]] += one["_diff"] if at <= instant else 0
    return dict(counts.keys() & {row for row, copies in counts.items() if copies})


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_nothing_is_lost_or_emitted_twice_whatever_is_killed(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    queries: dict[str, int] = {}
    moves: list[threading.Thread] = []
    rows = 50
    with nm.connect(spark, path=tmp_path / "plant") as db:
        file = declare(db, tmp_path, rows)
        for step in range(25):
            names = sorted(queries)
            match chance.choice(
                ("rows", "rows", "create", "create", "stop", "drop", "kill", "move")
            ):
                case "rows":
                    write_rows(file, range(rows, rows + 50))
                    rows += 50
                    time.sleep(chance.random())
                case "create":
                    queries[f"q{step}"] = chance.randrange(3)
                    db.execute(f"CREATE QUERY q{step} AS {GOOD.format(n=queries[f'q{step}'])}")
                case "stop" if names:
                    name = chance.choice(names)
                    db.stop_query(name)
                    db.start_query(name)
                case "drop" if names:
                    name = chance.choice(names)
                    db.drop_query(name)
                    del queries[name]
                case "kill":
                    kill_python_processes()
                case "move" if names:
                    moves += move_all(db, names)
                case _:
                    continue
        for one in moves:
            one.join()
        for name, remainder in queries.items():
            wait_for_results(db, name, [v for v in range(rows) if v % 3 == remainder])
    with nm.connect(spark, path=tmp_path / "plant") as db:
        assert sorted(db.resume()) == sorted(queries)
        write_rows(file, range(rows, rows + 50))
        for name, remainder in queries.items():
            wait_for_results(db, name, [v for v in range(rows + 50) if v % 3 == remainder])


def move_all(db: nm.Database, names: list[str]) -> Iterator[threading.Thread]:
    """Let queries change buckets, as they do where one bucket has most of the work."""
    hosted = [one for name in names if isinstance(one := db.queries.get(name), HostedQuery)]
    for engine in {id(one.engine): one.engine for one in hosted}.values():
        places = engine._shared()
        moves = {one.query: 1 - places[one.query] for one in hosted if one.query in places}
        made = threading.Thread(target=engine._move, args=(moves,))
        made.start()
        yield made


def test_what_only_spark_computes_has_an_engine_of_its_own(db: nm.Database, tmp_path: Path) -> None:
    declare(db, tmp_path, 5)
    text = "SELECT v, soundex(CAST(k AS STRING)) AS s FROM A FROM START"
    db.execute(f"CREATE QUERY q AS {text}")
    assert not isinstance(db.queries["q"], HostedQuery)
    wait_for_results(db, "q", [0, 1, 2, 3, 4])
    with pytest.raises(SqlError, match="this query cannot run in the shared engine"):
        db.execute(f"CREATE QUERY r WITH (engine = 'shared') AS {text}")


def test_a_query_tells_when_it_has_worked_through_all_rows(db: nm.Database, tmp_path: Path) -> None:
    file = declare(db, tmp_path, 5)
    db.execute("CREATE QUERY q AS SELECT v FROM A FROM START")
    for count in (5, 50):
        write_rows(file, range(count, 10 * count))
        log = LogReader.open(db.log_of("A"))
        wait_for(lambda: log.end.row == 10 * count)  # noqa: B023
        db.queries["q"].processAllAvailable()
        assert len(results(db, "q")) == 10 * count


def test_a_query_takes_no_longer_than_its_share() -> None:
    assert bucket.MOST_SECONDS < 13, "or the slow query above is not slow"
