"""`nilometer sql --server`: what a server answers is shown as what this process answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app
from nilometer.commands import follow_on_server, follow_results
from nilometer.commands.server_access import Server
from nilometer.database.try_sensor import TrialResult
from nilometer.errors import (
    ForbiddenError,
    GoesOnError,
    InputError,
    NoStreamError,
    NotFoundError,
    SqlError,
    UnauthorizedError,
)
from nilometer.log.layout import LogLayout as Layout
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sql.ddl.nodes import Show, ShowKind
from nilometer.sql.parse.with_constants import with_constants
from nilometer.sql.statements import Statement
from tests.asked_server import Asked, asked_server
from tests.patience import wait_for
from tests.results_server import CHANGES, QUICK, ROWS, changes, numbered


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    with asked_server(tmp_path) as server:
        yield server


def test_statements_are_run_in_order(asked: Asked) -> None:
    said = asked.sql("CREATE TABLE U (k INT); INSERT INTO U VALUES (:k); DESCRIBE U", "--param=k=7")
    assert "created table U" in said
    assert "inserted 1 row into U" in said
    assert "INT" in said
    rows = asked.server.catalog.table("U")
    assert rows is not None
    assert rows.to_pylist() == [{"k": 7}]


def test_all_formats(asked: Asked, tmp_path: Path) -> None:
    kinds = pa.table(
        {
            "s": ["x,y", "\x1b[31mred\x07"],
            "t": pa.array([datetime(2026, 1, 31, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "d": pa.array([Decimal("1.50"), None]),
            "l": pa.array([[1, 2], None]),
        }
    )
    asked.server.database.answer = kinds
    table = asked.sql("SELECT * FROM T")
    assert "\x1b" not in table
    assert "\x07" not in table
    assert r"\x1b[31mred" in table
    csv = asked.sql("SELECT * FROM T", "--format=csv")
    assert csv.splitlines() == [
        "s,t,d,l",
        "\x1b[31mred\x07,,,",
        '"x,y",2026-01-31T00:00:00Z,1.50,"[1,2]"',
    ]
    lines = asked.sql("SELECT * FROM T", "--format=jsonl").splitlines()
    assert [json.loads(one)["s"] for one in lines] == ["\x1b[31mred\x07", "x,y"]
    out = tmp_path / "out"
    asked.sql("SELECT * FROM T", "--format=parquet", "-o", str(out))
    assert pq.read_table(out).to_pylist() == kinds.take([1, 0]).to_pylist()


def test_a_cut_answer_is_reported(asked: Asked) -> None:
    asked.server.database.answer = pa.table({"n": range(20_000)})
    done = asked.run("SELECT n FROM T", "--format=csv")
    assert len(done.stdout.splitlines()) == 10_001
    assert "there are more rows: the server returns at most 10,000" in done.stderr


def test_errors_show_where(asked: Asked) -> None:
    with pytest.raises(SqlError) as caught:
        asked.sql("SHOW TABLES;\nDROP TABLE Nothing")
    assert "line 2, column 12" in str(caught.value)
    assert "^^^^^^^" in str(caught.value)
    with pytest.raises(GoesOnError) as goes_on:
        asked.sql("SELECT v FROM STREAM")
    assert "add --follow" in str(goes_on.value)
    with pytest.raises(UnauthorizedError):
        asked.sql("SHOW TABLES", scope="nm_wrong")
    with pytest.raises(ForbiddenError):
        asked.sql("DROP TABLE T", scope="read")


@pytest.mark.parametrize(
    "option",
    ["--at=end", "--buckets=2", "--execution=nta", "--stream=A=a.csv:ts", "--table=T=t.csv"],
)
def test_what_a_server_has_no_use_for(asked: Asked, option: str) -> None:
    with pytest.raises(InputError, match="cannot be used with a server"):
        asked.sql("SELECT 1 AS x", option)


def test_plans(asked: Asked) -> None:
    assert asked.run("SELECT k FROM T", command="explain").stdout == "a plan as text\n"
    assert asked.sql("EXPLAIN SELECT k FROM T") == "a plan as text\n"


@contextmanager
def stopped_by(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What ends following in the place of Ctrl-C."""
    stops = [threading.Event(), threading.Event()]

    @contextmanager
    def signals() -> Iterator[list[threading.Event]]:
        yield stops

    monkeypatch.setattr(follow_results, "stop_signals", signals)
    yield stops[0]
    stops[0].set()


def in_background(work: Any) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_named_query_is_followed(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with asked.query("q", ROWS) as log, stopped_by(monkeypatch) as stop:
        log.append(numbered(0, 5))

        def write() -> None:
            first, wanted = 5, "SELECT n"
            while not out.exists() or out.read_text().count("\n") < 3:
                log.append(numbered(first, 1))
                first += 1
                stop.wait(0.05)
            stop.set()
            assert wanted

        writing = in_background(write)
        asked.sql("--follow", "--format=jsonl", "-o", str(out), "q")
        writing.join()
    numbers = [json.loads(line)["n"] for line in out.read_text().splitlines()]
    assert numbers[0] >= 5  # what comes, not what was there
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_no_more_is_heard_than_is_written(asked: Asked) -> None:
    """Whoever writes slowly does not collect in memory what comes meanwhile."""
    with asked.query("q", ROWS) as log:
        for first in range(0, 200_000, 5_000):
            log.append(numbered(first, 5_000))
        server = Server(asked.url, asked.server.secrets["read"])
        with follow_on_server.Listening(server, "q", "start") as listening:
            wait_for(listening._batches.full)
            assert listening._batches.qsize() == listening._batches.maxsize <= 8
            heard: list[int] = []
            while len(heard) < 200_000:
                batch = listening.take(1)
                heard += [] if batch is None else batch.column("n").to_pylist()
                assert listening._batches.qsize() <= listening._batches.maxsize
    assert heard == [*range(200_000)]


def test_all_that_is_stored(asked: Asked) -> None:
    with asked.query("q", ROWS) as log:
        for first in range(0, 25_000, 5_000):
            log.append(numbered(first, 5_000))
        done = asked.run("--catch-up", "--format=csv", "q")
    assert [int(line.split(",")[0]) for line in done.stdout.splitlines()[1:]] == [*range(25_000)]
    assert "rows: 25,000" in done.stderr
    with pytest.raises(NotFoundError, match="there is no query nothing"):
        asked.sql("--catch-up", "nothing")
    with pytest.raises(InputError, match="has no end"):
        asked.sql("--catch-up", "SELECT v FROM STREAM")


def test_the_answer_of_a_named_query(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked.query("q", CHANGES) as log, stopped_by(monkeypatch) as stop:
        log.append(changes(("a", 1, 10, 1), ("b", 2, 20, 1)), watermark=30)
        took = []
        take = follow_on_server.Listening.take

        def count(self: Any, seconds: float) -> Any:
            if not took:
                log.append(changes(("a", 1, 40, -1), ("c", 3, 40, 1)), watermark=50)
            batch = take(self, seconds)
            took.append(batch)
            if batch is not None:
                stop.set()
            return batch

        monkeypatch.setattr(follow_on_server.Listening, "take", count)
        shown = asked.sql("--follow", "--answer", "q").split("\n\n")
    assert [[line.split()[0] for line in one.splitlines()[2:4]] for one in shown[:2]] == [
        ["a", "b"],
        ["b", "c"],
    ]


def test_a_select_is_a_temporary_query(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    database = asked.server.database
    made = []
    create = database.create_query

    def remember(name: str | None, statement: Statement, **more: Any) -> Any:
        made.append(statement.sql)
        query = create(name, statement, **more)
        layout = Layout(ROWS, "_time")
        with LogWriter.open(asked.log_of(query.name), layout, QUICK) as log:
            log.append(numbered(0, 3))
        return query

    database.create_query = remember  # type: ignore[method-assign]
    take = follow_on_server.Listening.take
    with stopped_by(monkeypatch) as stop:

        def end(self: Any, seconds: float) -> Any:
            batch = take(self, seconds)
            if batch is not None:
                stop.set()
            return batch

        monkeypatch.setattr(follow_on_server.Listening, "take", end)
        text = "SELECT n FROM STREAM WHERE s = :s"
        shown = asked.sql("--follow", "--format=csv", text, "--param=s=it's")
    assert [line.split(",")[0] for line in shown.splitlines()] == ["n", "0", "1", "2"]
    assert made == [r"SELECT n FROM STREAM WHERE s = ('it\'s')"]
    wait_for(lambda: not database.kept)


def test_nothing_to_follow_is_answered(asked: Asked) -> None:
    def refuse(*_: Any, **more: Any) -> Any:
        raise NoStreamError("this query reads no stream, so there is nothing to continue")

    asked.server.database.create_query = refuse  # type: ignore[method-assign]
    assert asked.sql("SELECT v FROM T", "--follow", "--format=csv").startswith("v\n")


def test_sensors_of_a_server(asked: Asked) -> None:
    asked.server.sql("INSERT INTO Rooms VALUES (7, 'seven')")
    rows = {
        "stream": ["Rooms"],
        "sensor": ["7\x1b[2J"],
        "address": ["tcp://h:1"],
        "state": ["connected"],
        "readings": [12],
        "rate": [1.5],
        "last_reading": ["v = 3"],
        "last_time": pa.array([datetime(2026, 1, 31, 12, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "errors": [0],
        "dead_letters": [2],
        "dropped": [0],
        "last_error": pa.array([None], pa.string()),
    }
    execute = asked.server.database.execute

    def answer(statement: Any, **more: Any) -> Any:
        if isinstance(statement, Show) and statement.what is ShowKind.SENSORS:
            assert statement.of in (None, "Rooms")
            return Outcome("1 sensor", pa.table(rows))
        return execute(statement, **more)

    asked.server.database.execute = answer  # type: ignore[method-assign]
    for arguments in ([], ["Rooms"]):
        shown = asked.run(*arguments, command="sensors list").stdout
        assert "connected" in shown
        assert "12:00:00" in shown
        assert "\x1b" not in shown
        assert f"read by the server at {asked.url}" in shown
    assert "Rooms" in asked.run("--seconds=0.2", command="sensors watch").stdout
    tried = TrialResult(
        "Rooms", "7", ({"v": 3},), 1, ({"reason": "no", "payload": "x"},), 1, 0, None
    )
    asked.server.database.try_sensor = lambda *_, **__: tried  # type: ignore[method-assign]
    shown = asked.run("Rooms", "7", command="sensors test").stdout
    assert '{"v": 3}' in shown
    assert "refused: no: x" in shown
    assert "1 reading came" in shown
    done = CliRunner().invoke(app, ["sensors", "list"])
    assert isinstance(done.exception, InputError)
    assert "expected a database or a server" in str(done.exception)


VALUES = st.one_of(
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.sampled_from(["'", "\\", "\\'", "' OR 1=1 --", "/*", ":p", ";", "\n", '"', "`"]),
)


@given(VALUES)
def test_constants_are_the_values(value: object) -> None:
    """What is kept as text means what was bound: read again by an independent way."""
    db = nm.connect()
    db.create_table("T", pa.table({"k": [1]}))
    text = with_constants("SELECT :p AS v, ':p' AS w FROM T", {"p": value})
    row = db.sql(text).to_pylist()[0]
    assert row == {"v": value, "w": ":p"}
    assert type(row["v"]) is type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "(NULL)"),
        (b"a'", "(X'6127')"),
        (Decimal("-1.50"), "(CAST(-1.50 AS DECIMAL(3, 2)))"),
        (date(2026, 1, 31), "(CAST('2026-01-31' AS DATE))"),
        (timedelta(seconds=-1), "(INTERVAL '-1000000' MICROSECOND)"),
    ],
)
def test_constants_of_other_types(value: object, text: str) -> None:
    assert with_constants("SELECT :p", {"p": value}) == f"SELECT {text}"
    assert with_constants("SELECT a:p, ':p', x FROM A -- :p", {"q": value}) == (
        "SELECT a:p, ':p', x FROM A -- :p"
    )
