"""The client: every row once, whatever the connection or the server does; errors as they are."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import nilometer as nm
from nilometer.client import AsyncQuery, Query
from nilometer.client.arrow_messages import ArrowMessages
from nilometer.client.following import FollowState, LostError
from nilometer.client.replies import Reply as ClientReply
from nilometer.client.replies import make_error
from nilometer.errors import (
    ClosedError,
    ForbiddenError,
    InputError,
    InternalError,
    LogGapError,
    NilometerError,
    NotFoundError,
    ResultsGoneError,
    UnauthorizedError,
    UnknownNameError,
    UnreachableError,
)
from nilometer.log.options import Fsync, LogOptions
from nilometer.server.results.formats import ArrowStream, whole_arrow_stream
from tests.results_server import (
    CHANGES,
    ROWS,
    TOKEN,
    StoredQueries,
    WebServer,
    changes,
    numbered,
)

STATUS = {"name": "q", "statement": "SELECT …", "emits": "append"}
ARROW = "application/vnd.apache.arrow.stream"


def test_stored_rows(queries: StoredQueries, client: nm.Client) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 30), watermark=20)
    query = Query(client, STATUS)
    page = query.page(limit=10)
    assert [row["n"] for row in page] == list(range(10))
    assert next(iter(page))["_time"] == datetime(1970, 1, 1, tzinfo=UTC)
    rest = query.page(page.next)
    assert (len(rest), rest.at_end) == (20, True)
    assert rest.watermark == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=20)
    assert [row["n"] for row in query.page("latest", limit=2)] == [28, 29]
    assert query.to_arrow().schema == ROWS
    assert query.to_arrow(limit=7).num_rows == 7
    assert list(query.to_pandas()["n"]) == list(range(30))


def test_an_answer_and_what_follows(queries: StoredQueries, client: nm.Client) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 1, 1, 2), ("b", 2, 7, 1)), watermark=5)
        query = Query(client, STATUS)
        answer = query.answer()
        assert list(answer) == [{"k": "a", "n": 1}] * 2
        assert answer.instant == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=4)
        with query.follow(answer.offset) as following:
            assert next(following)["k"] == "b"
            log.append(changes(("a", 1, 9, -2)))
            assert next(following)["_diff"] == -2


def test_the_offset_is_always_that_after_the_last_row(
    queries: StoredQueries, client: nm.Client
) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 4))
        log.append(numbered(4, 4))
        query = Query(client, STATUS)
        offset, got = "start", []
        for _ in range(8):
            with query.follow(offset) as following:
                got.append(next(following)["n"])
                offset = following.offset
        assert got == list(range(8))
        with query.follow("start", batches=True) as batches:
            assert next(batches).num_rows == 8
            log.append(numbered(8, 1))
            offset = batches.offset
        with query.follow(offset) as following:
            assert next(following)["n"] == 8


@pytest.mark.parametrize("batches", [False, True])
def test_every_row_once_while_the_server_is_started_again_and_again(
    queries: StoredQueries, server: WebServer, client: nm.Client, batches: bool
) -> None:
    follow_over_restarts(queries, server, client, batches, total=1500, restarts=4)


@pytest.mark.soak
@pytest.mark.limit(1800)
@pytest.mark.parametrize("batches", [False, True])
def test_every_row_once_over_many_restarts(
    queries: StoredQueries, server: WebServer, client: nm.Client, batches: bool
) -> None:
    follow_over_restarts(queries, server, client, batches, total=60_000, restarts=100)


def follow_over_restarts(
    queries: StoredQueries,
    server: WebServer,
    client: nm.Client,
    batches: bool,
    total: int,
    restarts: int,
) -> None:
    choose = random.Random(batches)
    log = queries.create("q")

    def write() -> None:
        for first in range(0, total, 15):
            log.append(numbered(first, 15), watermark=first)
            time.sleep(0.01)

    def interrupt() -> None:
        for _ in range(restarts):
            time.sleep(choose.random() * 0.3)
            server.cut()
            time.sleep(0.05)
            server.start()

    threads = [threading.Thread(target=one) for one in (write, interrupt)]
    for one in threads:
        one.start()
    got: list[int] = []
    losses: list[NilometerError] = []
    following: Any = Query(client, STATUS).follow(
        "start", batches=batches, on_reconnect=lambda error, _: losses.append(error)
    )
    for item in following:
        got += item.column("n").to_pylist() if batches else [item["n"]]
        if len(got) >= total:
            break
    following.close()
    for one in threads:
        one.join()
    log.close()
    assert got == list(range(total))
    assert losses
    assert server.starts == restarts + 1


def test_the_asynchronous_client_does_the_same(queries: StoredQueries, server: WebServer) -> None:
    async def follow() -> list[int]:
        async with nm.AsyncClient(server.url, TOKEN) as client:
            query = AsyncQuery(client, STATUS)
            assert (await query.page(limit=3)).at_end is False
            assert (await query.to_arrow(limit=5)).num_rows == 5
            got: list[int] = []
            async with query.follow("start", patience=20) as following:
                async for row in following:
                    got.append(row["n"])
                    if len(got) in (3, 60):
                        await asyncio.to_thread(server.cut)
                        log.append(numbered(10 if len(got) == 3 else 60, 50))
                        await asyncio.to_thread(server.start)
                    if len(got) == 110:
                        return got
            raise AssertionError

    with queries.create("q") as log:
        log.append(numbered(0, 10))
        assert asyncio.run(follow()) == list(range(110))


def test_a_query_that_is_dropped_ends_what_follows_it(
    queries: StoredQueries, client: nm.Client
) -> None:
    log = queries.create("q")
    log.append(numbered(0, 1))
    following = Query(client, STATUS).follow("start")
    assert next(following)["n"] == 0
    log.close()
    queries.drop("q")
    with pytest.raises((ResultsGoneError, NotFoundError)):
        next(following)


def test_rows_that_are_gone_are_reported(queries: StoredQueries, client: nm.Client) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)
    with queries.create("q", options=options) as log:
        log.append(numbered(0, 1))
        query = Query(client, STATUS)
        offset = query.page("start", limit=1).next
        log.append(numbered(1, 1))
        for first in range(2, 60):
            log.append(numbered(first, 1))
        log.trim()
        with pytest.raises(LogGapError) as error:
            next(query.follow(offset))
        row = next(query.follow(str(error.value.oldest)))
        assert row["n"] == error.value.rows + 1


def test_what_waiting_would_not_cure_is_raised_at_once(
    queries: StoredQueries, server: WebServer
) -> None:
    queries.create("q").close()
    for token, kind in (("nm_wrong", UnauthorizedError), ("nm_nothing", ForbiddenError)):
        with nm.Client(server.url, token) as client, pytest.raises(kind):
            next(Query(client, STATUS).follow())
    with nm.Client(server.url, TOKEN) as client:
        with pytest.raises(InputError, match="this is not an offset"):
            next(Query(client, STATUS).follow("nonsense"))
        with pytest.raises(NotFoundError):
            next(Query(client, {**STATUS, "name": "other"}).follow())


def test_patience_ends() -> None:
    with nm.Client("http://127.0.0.1:9", TOKEN) as client:
        with pytest.raises(UnreachableError, match="the server cannot be reached"):
            client.queries()
        with pytest.raises(UnreachableError):
            next(Query(client, STATUS).follow(patience=0.2))


@pytest.mark.parametrize("url", ["127.0.0.1:8642", "ftp://x", "", "http://"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match="not the address of a server"):
        nm.Client(url)


# Servers that misbehave: each request gets the next reply of a script.

Reply = tuple[int, dict[str, str], list[bytes]]


class Script:
    """A web application that replies as it is told, and notes what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        self.asked.append((f"{scope['path']}?{scope['query_string'].decode()}", headers))
        status, given, body = self.replies.pop(0)
        raw = [(key.encode(), value.encode()) for key, value in given.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        for piece in body:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0.01)
        if "content-length" not in given:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[Script, str]]]:
    running: list[WebServer] = []

    def start(*replies: Reply) -> tuple[Script, str]:
        script = Script(*replies)
        server = WebServer(lambda: script)
        server.start()
        running.append(server)
        return script, server.url

    yield start
    for server in running:
        server.cut()


def arrow_reply(*pieces: bytes, **headers: str) -> Reply:
    return 200, {"content-type": ARROW, **headers}, list(pieces)


def batch(first: int, count: int, start: str, offset: str) -> bytes:
    return ArrowStream(ROWS).batch(numbered(first, count), {"start": start, "offset": offset})


BEGIN = bytes(ROWS.serialize())


def test_replies_that_are_cut_spoiled_or_refused_for_a_while(
    scripted: Callable[..., tuple[Script, str]],
) -> None:
    whole = batch(3, 3, "a.3", "b")
    problem = {"message": "the server is starting", "kind": "ClosedError"}
    spoiled = bytearray(batch(6, 2, "b", "c"))
    spoiled[8:40] = bytes(32)
    script, url = scripted(
        arrow_reply(BEGIN + batch(0, 3, "a", "a.3"), whole[: len(whole) // 2]),
        (503, {"content-type": "application/json"}, [json.dumps({"error": problem}).encode()]),
        (502, {"content-type": "text/html"}, [b"<h1>bad gateway</h1>"]),
        arrow_reply(BEGIN[:11], BEGIN[11:] + whole[:1], whole[1:], b"garbage, and more of it"),
        arrow_reply(BEGIN + bytes(spoiled)),
        arrow_reply(BEGIN + batch(6, 2, "b", "c"), **{"content-length": "100000"}),
        arrow_reply(BEGIN + batch(8, 1, "c", "d")),
    )
    losses: list[NilometerError] = []
    with nm.Client(url, TOKEN) as client:
        following = Query(client, STATUS).follow(
            "a", on_reconnect=lambda error, _: losses.append(error)
        )
        assert [next(following)["n"] for _ in range(9)] == list(range(9))
        following.close()
    offsets = [path.partition("offset=")[2].partition("&")[0] for path, _ in script.asked]
    assert offsets == ["a", "a.3", "a.3", "a.3", "b", "b", "c"]
    assert len(losses) == 6
    assert isinstance(losses[1], ClosedError)


def test_what_is_no_nilometer_server_is_said_at_once(
    scripted: Callable[..., tuple[Script, str]],
) -> None:
    _, url = scripted((200, {"content-type": "text/html"}, [b"<h1>hello</h1>"]))
    with nm.Client(url, TOKEN) as client, pytest.raises(UnreachableError, match="status 200"):
        next(Query(client, STATUS).follow())


def test_a_token_is_never_sent_elsewhere(scripted: Callable[..., tuple[Script, str]]) -> None:
    elsewhere, other = scripted((200, {}, [b"[]"]))
    script, url = scripted((307, {"location": f"{other}/queries"}, []))
    refusal = pytest.raises(UnreachableError, match="redirects to another address")
    with nm.Client(url, TOKEN) as client, refusal:
        client.queries()
    assert script.asked[0][1]["authorization"] == f"Bearer {TOKEN}"
    assert elsewhere.asked == []


def test_statements(scripted: Callable[..., tuple[Script, str]]) -> None:
    rows = pa.table(
        {"n": pa.array([1, 2], pa.int16()), "d": [datetime(2026, 1, 1, tzinfo=UTC)] * 2}
    )
    done = {"message": "stream S created", "columns": [], "rows": [], "is_cut": False}
    refused = {
        "message": "there is no stream X",
        "hint": "did you mean Y?",
        "kind": "UnknownNameError",
        "position": {"line": 1, "column": 15, "start": 14, "end": 15},
    }
    as_json = {"content-type": "application/json"}
    script, url = scripted(
        arrow_reply(whole_arrow_stream(rows, {"is_cut": "true"})),
        (200, as_json, [json.dumps(done).encode()]),
        (400, as_json, [json.dumps({"error": refused}).encode()]),
        (201, as_json, [json.dumps(STATUS).encode()]),
        (200, as_json, [json.dumps(STATUS).encode()]),
        (204, {}, []),
    )
    with nm.Client(url, TOKEN) as client:
        answer = client.execute("SELECT * FROM T")
        assert (answer.to_arrow(), answer.is_cut, len(answer)) == (rows, True, 2)
        assert next(iter(answer))["n"] == 1
        assert client.execute("CREATE STREAM S …").message == "stream S created"
        with pytest.raises(UnknownNameError) as error:
            client.execute("SELECT * FROM X")
        assert error.value.place is not None
        assert error.value.place.excerpt() == ("SELECT * FROM X", "              ^")
        assert error.value.hint == "did you mean Y?"
        assert client.query("SELECT * FROM S").name == "q"
        client.query("q").drop()
    assert [path for path, _ in script.asked][3:] == ["/queries?", "/queries/q?", "/queries/q?"]


def test_errors_of_every_kind() -> None:
    assert type(make_error({"message": "m", "kind": "ForbiddenError"})) is ForbiddenError
    assert type(make_error({"message": "m", "kind": "Path"})) is NilometerError
    assert type(make_error({"message": "m", "kind": "Exception"})) is NilometerError


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_arrow_comes_in_pieces_of_any_size(size: int) -> None:
    stream = BEGIN + batch(0, 3, "a", "b") + batch(3, 0, "b", "c") + batch(3, 2, "c", "d")
    messages, got = ArrowMessages(), []
    for first in range(0, len(stream), size):
        got += list(messages.feed(stream[first : first + size]))
    assert [one.rows.column("n").to_pylist() for one in got] == [[0, 1, 2], [], [3, 4]]
    assert [one.metadata["offset"] for one in got] == ["b", "c", "d"]


def test_pauses_grow_and_begin_anew_with_every_word_of_the_server() -> None:
    state = FollowState("q", "start")
    pauses = [state.lost(UnreachableError("gone")) for _ in range(12)]
    assert 0.05 <= pauses[0] <= 0.1
    assert max(pauses) <= 5
    assert min(pauses[-3:]) >= 2.5
    list(state.batches(BEGIN + batch(0, 1, "a", "b")))
    assert state.lost(UnreachableError("gone")) <= 0.1


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (500, b"Internal Server Error", LostError),
        (503, b"<html>", LostError),
        (429, b'{"error": {"message": "too many", "kind": "LimitError"}}', LostError),
        (404, b"<html>", UnreachableError),
        (500, b'{"error": {"message": "a fault", "kind": "InternalError"}}', InternalError),
    ],
)
def test_what_a_server_that_stops_may_answer_is_tried_again(
    status: int, content: bytes, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        FollowState("q", "start").check(ClientReply(status, {}, content))


@pytest.mark.parametrize("read", [FollowState.rows, FollowState.batches])
def test_a_server_that_says_goodbye_is_called_again(
    read: Callable[[FollowState, bytes], Iterator[object]],
) -> None:
    state = FollowState("q", "start")
    content = {"error": {"message": "the server is stopping", "kind": "ClosedError"}}
    metadata = {"event": "end", "data": json.dumps(content)}
    farewell = ArrowStream(ROWS).batch(numbered(0, 0), metadata)
    with pytest.raises(LostError):
        list(read(state, BEGIN + farewell))
