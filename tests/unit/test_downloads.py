"""Rows of queries and streams as files, over HTTP and by the client."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app
from nilometer.client.downloads import FORMATS as CLIENT_FORMATS
from nilometer.client.replies import Reply, read_table
from nilometer.commands import download
from nilometer.database.query_status import QueryLimits, QueryPhase, QueryStatus
from nilometer.errors import (
    InputError,
    InstallationError,
    NilometerError,
    NotFoundError,
    UnreachableError,
)
from nilometer.kernels.json_values import values_of
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.writer import LogWriter
from nilometer.server.results import download_formats
from nilometer.server.results.stored_results import StoredResults
from tests.results_server import WebServer
from tests.served import Served, served

SCHEMA = pa.schema(
    [
        (TIME, TIMESTAMP),
        ("room", pa.int64()),
        ("v", pa.float64()),
        ("note", pa.string()),
        ("list", pa.list_(pa.int64())),
    ]
)
COUNT = 120


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A query q with a row of two rooms every second, a stream s with the same, a changelog c."""
    with served(tmp_path) as made:
        database = made.database
        for name, emits in (("q", "append"), ("c", "changelog")):
            made.catalog.create_query(name, "SELECT v FROM A", emits)
        database.execute("CREATE STREAM s (room BIGINT, v DOUBLE, note STRING) FROM http")
        rows = pa.Table.from_pylist(
            [
                {
                    TIME: at * 1_000_000,
                    "room": at % 2,
                    "v": float(at),
                    "note": f'a,"{at}"',
                    "list": [at],
                }
                for at in range(COUNT)
            ],
            SCHEMA,
        )
        for name in ("q", "s"):
            with LogWriter.open(database.logs / name, LogLayout(SCHEMA, TIME)) as log:
                for batch in rows.to_batches(25):
                    log.append(batch, watermark=None)
        changes = pa.schema([(TIME, TIMESTAMP), (DIFF, pa.int64()), ("v", pa.float64())])
        records = [
            {TIME: 1, DIFF: 1, "v": 1.0},
            {TIME: 1, DIFF: 1, "v": 2.0},
            {TIME: 2, DIFF: -1, "v": 1.0},
        ]
        with LogWriter.open(database.logs / "c", LogLayout(changes, TIME, changes=True)) as log:
            log.append(pa.RecordBatch.from_pylist(records, changes), watermark=3)
        database.kept = {name: status(name) for name in ("q", "c")}
        yield made


@pytest.fixture
def web(server: Served) -> Iterator[WebServer]:
    server.service.queries._results = StoredResults(lambda name: str(server.database.logs / name))
    made = WebServer(lambda: server.app)
    made.start()
    yield made
    made.cut()


def status(name: str) -> QueryStatus:
    phase, limits = QueryPhase.RUNNING, QueryLimits()
    return QueryStatus(
        name, "SELECT", "append", phase, 0, 0, None, 0, None, False, limits, 0, 0, 0, 0
    )


def get(server: Served, path: str, scope: str | None = "read") -> Any:
    answer = server.ask("GET", path, scope)
    assert answer.status_code == 200, answer.text
    return answer


def test_all_rows_in_every_format(server: Served) -> None:
    answer = get(server, "/queries/Q/download?format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''q.csv"
    header, *lines = csv.reader(io.StringIO(answer.text))
    assert header == SCHEMA.names
    assert lines[3] == ["1970-01-01T00:00:03.000000Z", "1", "3", 'a,"3"', "[3]"]
    assert len(lines) == COUNT
    answer = get(server, "/streams/s/download?format=jsonl")
    assert answer.headers["content-type"] == "application/x-ndjson"
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert rows[3] == {
        TIME: "1970-01-01T00:00:03.000000Z",
        "room": 1,
        "v": 3.0,
        "note": 'a,"3"',
        "list": [3],
    }
    answer = get(server, "/queries/q/download?format=arrow")
    table = pa.ipc.open_stream(answer.content).read_all()
    assert answer.headers["content-disposition"].endswith("q.arrow")
    other = get(server, "/streams/s/download?format=parquet")
    assert other.headers["content-type"] == "application/vnd.apache.parquet"
    assert pq.read_table(io.BytesIO(other.content)).equals(table)
    assert table.column("v").to_pylist() == [float(at) for at in range(COUNT)]


def test_a_range_columns_buckets_and_points(server: Served) -> None:
    answer = get(
        server,
        "/queries/q/download?start=1970-01-01T00:00:10&end=1970-01-01T00:00:12Z&columns=v&columns=room",
    )
    assert answer.text.splitlines() == ['"v","room"', "10,0", "11,1", "12,0"]
    path = "/streams/s/download?bucket=1%20minute&per=room&columns=v"
    lines = list(csv.reader(io.StringIO(get(server, path).text)))
    assert lines == [
        [TIME, "room", "v_min", "v_max", "v_mean", "rows"],
        ["1970-01-01T00:00:00.000000Z", "0", "0", "58", "29", "30"],
        ["1970-01-01T00:00:00.000000Z", "1", "1", "59", "30", "30"],
        ["1970-01-01T00:01:00.000000Z", "0", "60", "118", "89", "30"],
        ["1970-01-01T00:01:00.000000Z", "1", "61", "119", "90", "30"],
    ]
    lines = list(
        csv.reader(io.StringIO(get(server, "/queries/q/download?points=5&columns=v").text))
    )
    assert len(lines) == 6
    assert (lines[1][1], lines[-1][1]) == ("0", "119")


@given(st.lists(st.one_of(st.none(), st.integers(-(10**17), 4 * 10**17)), max_size=5))
def test_times_are_written_as_everywhere(micros: list[int | None]) -> None:
    column = pa.array(micros, TIMESTAMP)
    assert download_formats._cell(column).to_pylist() == values_of(column)


def test_changes_and_the_answer_of_a_query(server: Served) -> None:
    assert len(get(server, "/queries/c/download").text.splitlines()) == 4
    assert get(server, "/queries/c/download?answer=true").text.splitlines() == ['"v"', "2"]


def test_who_may_and_what_is_refused(server: Served) -> None:
    assert server.ask("GET", "/queries/q/download", None).status_code == 401
    for path, code in (
        ("/queries/none/download", 404),
        ("/streams/q/download", 404),
        ("/queries/q/download?format=xml", 422),
        ("/queries/q/download?start=yesterday", 400),
        ("/queries/q/download?bucket=long", 400),
        ("/queries/q/download?bucket=0s", 400),
        ("/queries/q/download?points=2", 422),
        ("/queries/q/download?columns=nothing", 400),
        ("/queries/q/download?points=5", 400),
        ("/queries/c/download?answer=true&start=1970-01-01", 400),
    ):
        answer = server.ask("GET", path, "read")
        assert answer.status_code == code, (path, answer.text)


def test_one_token_has_a_share(server: Served) -> None:
    shares = server.service._shares
    taken = [shares.one("read") for _ in range(server.service.settings.max_statements_each)]
    for one in taken:
        one.__enter__()
    assert server.ask("GET", "/queries/q/download", "read").status_code == 429
    for one in taken:
        one.__exit__(None, None, None)
    get(server, "/queries/q/download")
    assert not shares._taken


def test_the_client_stores_files(server: Served, tmp_path: Path) -> None:
    web = WebServer(lambda: server.app)
    web.start()
    try:
        with nm.Client(web.url, server.secrets["read"]) as client:
            path = client.download("q", tmp_path / "q.parquet", start="1970-01-01T00:01:00")
            assert pq.read_table(path).num_rows == 60
            client.download("s", tmp_path / "s.csv", bucket="1 minute", per=["room"], columns=["v"])
            assert len((tmp_path / "s.csv").read_text().splitlines()) == 5
            with pytest.raises(NotFoundError, match="no stream"):
                client.download("nothing", tmp_path / "nothing.csv")
            with pytest.raises(InputError, match="unknown format"):
                client.download("q", tmp_path / "q.xls")
        asyncio.run(by_the_other_client(web.url, server.secrets["read"], tmp_path))
        left = {one.name for one in tmp_path.iterdir() if one.name.startswith(".")}
        assert not left
    finally:
        web.cut()


def test_the_command_stores_files(server: Served, tmp_path: Path) -> None:
    web = WebServer(lambda: server.app)
    web.start()

    def run(*words: str, token: str = "read", at: str | None = None) -> str:
        secret = {"NILOMETER_TOKEN": server.secrets.get(token, token)}
        asked = ["--server", at or web.url] if at != "nowhere" else []
        done = CliRunner(env=secret).invoke(app, ["download", *words, *asked])
        if isinstance(done.exception, NilometerError):
            raise done.exception
        assert done.exception is None, done.exception
        return done.output

    try:
        path = tmp_path / "q.parquet"
        assert f"wrote {path}: " in run("q", str(path), "--start", "1970-01-01T00:01:00")
        assert pq.read_table(path).num_rows == 60
        path = tmp_path / "s.txt"
        run(
            "s",
            str(path),
            *["--format", "csv", "--per", "room", "--column", "v", "--bucket"],
            "1 minute",
        )
        assert len(path.read_text().splitlines()) == 5
        run("s", str(tmp_path / "s.jsonl"), "--points", "7", "--column", "v", "--end", "1970-01-02")
        assert len((tmp_path / "s.jsonl").read_text().splitlines()) == 7
        run("c", str(tmp_path / "c.arrow"), "--answer")
        for words, token, at, said in (
            (("q", "q.xls"), "read", None, "unknown format 'xls'"),
            (("q", "q"), "read", None, "the file's name has no extension"),
            (("q", "nowhere/q.csv"), "read", None, "there is no folder"),
            (("nothing", "n.csv"), "read", None, "there is no stream nothing"),
            (("q", "q.csv", "--bucket", "soon"), "read", None, "soon"),
            (("q", "q.csv"), "wrong", None, "token"),
            (("q", "q.csv"), "read", "http://127.0.0.1:9", "cannot be reached"),
            (("q", "q.csv"), "read", "nowhere", "a download needs a running server"),
        ):
            name, file, *more = words
            with pytest.raises(NilometerError) as refused:
                run(name, str(tmp_path / file), *more, token=token, at=at)
            assert said in str(refused.value)
        assert not list(tmp_path.glob(".*.csv*"))
    finally:
        web.cut()
    assert download._FORMATS == CLIENT_FORMATS


@given(
    begin=st.one_of(st.none(), st.integers(-5, COUNT + 5)),
    stop=st.one_of(st.none(), st.integers(-5, COUNT + 5)),
    limit=st.one_of(st.none(), st.integers(0, COUNT)),
    as_text=st.booleans(),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_a_range_of_time(
    web: WebServer,
    server: Served,
    begin: int | None,
    stop: int | None,
    limit: int | None,
    as_text: bool,
) -> None:
    def at(second: int) -> str | datetime:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
        return moment.isoformat() if as_text else moment

    with nm.Client(web.url, server.secrets["read"]) as client:
        start = "start" if begin is None else at(begin)
        table = client.query("q").to_arrow(
            start=start, end=None if stop is None else at(stop), limit=limit
        )
        first, last = max(0, begin or 0), COUNT - 1 if stop is None else min(stop, COUNT - 1)
        expected = [float(second) for second in range(first, last + 1)]
        if begin is None and stop is None and limit == 0:
            expected, limit = expected[:1], None  # a page has at least one row
        assert table.schema.equals(SCHEMA)
        assert table.column("v").to_pylist() == expected[:limit]


def test_ranges_in_every_form(
    web: WebServer, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nm.Client(web.url, server.secrets["read"]) as client:
        query = client.query("q")
        day, soon = "1970-01-01", datetime(1970, 1, 1, 0, 0, 2)  # which is UTC
        assert list(query.to_pandas(start=day, end=soon)["v"]) == [0.0, 1.0, 2.0]
        assert query.to_arrow(start="latest", limit=2).num_rows == 2
        offset = query.page(limit=COUNT - 3).next
        assert query.to_arrow(start=offset).num_rows == 3
        with pytest.raises(InputError, match="end= needs an instant"):
            query.to_arrow(start=offset, end=day)
        with pytest.raises(InputError, match="cannot read an instant"):
            query.to_arrow(end="tomorrow")
        monkeypatch.setitem(sys.modules, "polars", None)
        with pytest.raises(InstallationError, match=r"^to_polars\(\) needs polars: pip install"):
            query.to_polars()
        polars: Any = ModuleType("polars")
        polars.__spec__ = ModuleSpec("polars", None)
        polars.from_arrow = lambda table: ("polars", table.num_rows)
        monkeypatch.setitem(sys.modules, "polars", polars)
        answer: Any = query.to_polars(end=soon)
        assert answer == ("polars", 3)
        page: Any = query.page(limit=4).to_polars()
        assert page == ("polars", 4)

    async def ask() -> None:
        async with nm.AsyncClient(web.url, server.secrets["read"]) as other:
            query = await other.query("q")
            assert (await query.to_arrow(start=day, end=soon, limit=2)).num_rows == 2
            assert len(await query.to_pandas(end=soon)) == 3
            frame: Any = await query.to_polars(start="latest", limit=5)
            assert frame == ("polars", 5)

    asyncio.run(ask())


def test_half_a_table_is_none() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(SCHEMA.empty_table())
    content = sink.getvalue().to_pybytes()
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    assert read_table(Reply(200, headers, content)).schema == SCHEMA
    for cut in (1, 8, len(content) - 4, len(content)):
        with pytest.raises(UnreachableError, match="is incomplete"):
            read_table(Reply(200, headers, content[:-cut]))
    with pytest.raises(UnreachableError):
        read_table(Reply(200, {"content-type": "text/html"}, content))


async def by_the_other_client(url: str, token: str, folder: Path) -> None:
    async with nm.AsyncClient(url, token) as client:
        await client.download("s", folder / "other.jsonl", points=7, columns=["v"])
    assert len((folder / "other.jsonl").read_text().splitlines()) == 7


def test_half_a_file_is_none(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Iterator[bytes]:
        yield b"a,b\n"
        raise OSError("the disk is gone")

    monkeypatch.setattr(download_formats, "_csv", broken)
    web = WebServer(lambda: server.app)
    web.start()
    try:
        with nm.Client(web.url, server.secrets["read"]) as client, pytest.raises(UnreachableError):
            client.download("q", tmp_path / "q.csv")
        assert not list(tmp_path.glob("*q.csv*"))
        assert not server.service._shares._taken
    finally:
        web.cut()
