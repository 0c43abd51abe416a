"""Results over HTTP: formats, resumption, slow and gone clients, ends."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from nilometer.client import Client, Query
from nilometer.database.query_status import QueryPhase
from nilometer.errors import ClosedError, LogGapError
from nilometer.log.options import Fsync, LogOptions
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.server.results.chunk import Chunk
from nilometer.server.results.events import End, Event, Heartbeat, tell
from nilometer.server.results.following_response import FollowingResponse
from tests.patience import LONG, until, wait_for
from tests.results_server import (
    CHANGES,
    TOKEN,
    StoredQueries,
    WebServer,
    changes,
    numbered,
)

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[StoredQueries]:
    made = StoredQueries(tmp_path, max_followers=3)
    yield made
    made.close()


def get(server: WebServer, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.url + path, headers={**HEADERS, **headers})


def events_of(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Server-sent events, with their data read."""
    event: dict[str, Any] = {}
    for line in response.iter_lines():
        if not line:
            if event:
                yield event
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["n"] for row in rows]


def test_pages_in_every_format(queries: StoredQueries, server: WebServer) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 3), watermark=2)
    page = get(server, "/queries/q/results?limit=2").json()
    assert page["columns"][0] == {"name": "n", "type": "BIGINT"}
    assert page["rows"][1] == {"n": 1, "x": 0.5, "_time": "1970-01-01T00:00:00.000001Z"}
    assert not page["at_end"]
    rest = get(server, f"/queries/q/results?offset={page['next']}").json()
    assert (numbers(rest["rows"]), rest["at_end"]) == ([2], True)
    assert rest["watermark"] == "1970-01-01T00:00:00.000002Z"

    lines = get(server, "/queries/q/results?limit=2", Accept="application/x-ndjson")
    records = [json.loads(line) for line in lines.text.splitlines()]
    assert [one["row"]["n"] for one in records[:-1]] == [0, 1]
    assert lines.headers["nilometer-next"] == records[-1]["offset"] == page["next"]
    after_first = get(server, f"/queries/q/results?offset={records[0]['offset']}").json()
    assert numbers(after_first["rows"]) == [1, 2]

    arrow = get(server, "/queries/q/results?format=arrow&limit=2")
    assert arrow.headers["content-type"] == ARROW
    with pa.ipc.open_stream(BytesIO(arrow.content)) as reader:
        batch = reader.read_next_batch_with_custom_metadata()
        assert batch.batch.column("n").to_pylist() == [0, 1]
        assert batch.custom_metadata[b"offset"].decode() == page["next"]
    assert numbers(get(server, "/queries/q/results?from=latest&limit=2").json()["rows"]) == [1, 2]
    assert get(server, "/queries/q/results?from=now").json()["rows"] == []


def test_what_is_refused(queries: StoredQueries, server: WebServer) -> None:
    queries.create("q").close()
    assert httpx.get(f"{server.url}/queries/q/results").status_code == 401
    assert get(server, "/queries/nobody/results").status_code == 404
    for wrong in ("offset=x", "format=json&follow=true", "format=sse&follow=false"):
        refused = get(server, f"/queries/q/results?{wrong}")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (400, "InputError")
    assert get(server, "/queries/q/results?limit=0").status_code == 422
    assert get(server, "/queries/q/results?format=xml").status_code == 422
    assert get(server, "/queries/q/answer").status_code == 400


def test_offsets_of_a_dropped_query_and_of_rows_that_are_gone(
    queries: StoredQueries, server: WebServer
) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)
    with queries.create("q", options=options) as log:
        log.append(numbered(0, 2))
        old = get(server, "/queries/q/results?limit=1").json()["next"]
        for first in range(2, 60, 2):
            log.append(numbered(first, 2))
        log.trim()
        gone = get(server, f"/queries/q/results?offset={old}")
        assert (gone.status_code, gone.json()["error"]["kind"]) == (410, "LogGapError")
        with httpx.stream(
            "GET", f"{server.url}/queries/q/results?follow=true&offset={old}", headers=HEADERS
        ) as response:
            events = events_of(response)
            next(events)
            gap, rows = next(events), next(events)
            assert (gap["event"], gap["data"]["error"]["kind"]) == ("gap", "LogGapError")
            first = rows["data"]["rows"][0]["n"]
            assert gap["data"]["rows"] == first - 1
            assert numbers(rows["data"]["rows"]) == list(range(first, 60))
    queries.drop("q")
    queries.create("q").close()
    gone = get(server, f"/queries/q/results?offset={old}")
    assert (gone.status_code, gone.json()["error"]["kind"]) == (410, "ResultsGoneError")


def test_a_follower_of_a_changelog_that_comes_too_late_gets_the_base(
    queries: StoredQueries, server: WebServer
) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)
    with queries.create("q", CHANGES, options) as log:
        log.append(changes(("a", 1, 0, 1)), watermark=1)
        old = get(server, "/queries/q/results?limit=1").json()["next"]
        for n in range(1, 40):
            log.append(changes(("a", n, n, -1), ("a", n + 1, n, 1)), watermark=n + 1)
        while log.pack():
            pass
        gone = get(server, f"/queries/q/results?offset={old}")
        assert (gone.status_code, gone.json()["error"]["kind"]) == (410, "LogGapError")
        with httpx.stream(
            "GET", f"{server.url}/queries/q/results?follow=true&offset={old}", headers=HEADERS
        ) as response:
            events = events_of(response)
            next(events)
            base, rows = next(events), next(events)
        assert base["event"] == "base"
        assert base["data"]["rows"] == 1
        shown = rows["data"]["rows"]
        assert shown[0]["_time"] == base["data"]["instant"]
        added: Counter[int] = Counter()
        for one in shown:
            added[one["n"]] += one["_diff"]
        assert +added == Counter({40: 1})
        assert get(server, "/queries/q/answer").json()["rows"] == [{"k": "a", "n": 40}]
        forgotten: list[int] = []
        with Client(server.url, TOKEN) as client:
            query = Query(client, {"name": "q", "statement": "", "emits": "changelog"})
            with pytest.raises(LogGapError):
                next(iter(query.follow(old)))
            row = next(iter(query.follow(old, on_base=forgotten.append)))
        assert (forgotten, row["_diff"]) == ([1], 1)


def test_events_tell_rows_watermarks_states_and_the_end(
    queries: StoredQueries, server: WebServer
) -> None:
    log = queries.create("q")
    log.append(numbered(0, 2), watermark=1)
    address = f"{server.url}/queries/q/results?follow=true&from=start"
    with httpx.stream("GET", address, headers=HEADERS) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response)
        assert next(events)["event"] == "columns"
        assert numbers(next(events)["data"]["rows"]) == [0, 1]
        log.append(numbered(2, 2), watermark=3)
        rows = next(events)
        assert numbers(rows["data"]["rows"]) == [2, 3]
        log.append(None, watermark=9)
        moved = next(events)
        assert (moved["event"], moved["data"]) == (
            "watermark",
            {"watermark": "1970-01-01T00:00:00.000009Z"},
        )
        queries.phases["q"] = (QueryPhase.FAILED, "a limit")
        state = next(events)
        assert (state["event"], state["data"]) == ("state", {"phase": "failed", "error": "a limit"})
        assert queries.followers.count("q") == 1
        log.close()
        queries.drop("q")
        end = next(events)
        assert end["event"] == "end"
        assert next(events, None) is None
    wait_for(lambda: queries.followers.taken == 0)
    queries.create("q").close()
    with httpx.stream("GET", address, headers={**HEADERS, "Last-Event-ID": rows["id"]}) as response:
        assert response.status_code == 410


def test_a_browser_that_connects_again_goes_on_where_it_was(
    queries: StoredQueries, server: WebServer
) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 2))
        first = get(server, "/queries/q/results?limit=1").json()["next"]
        address = f"{server.url}/queries/q/results?from=start"
        headers = {**HEADERS, "Accept": "text/event-stream", "Last-Event-ID": first}
        with httpx.stream("GET", address, headers=headers) as response:
            events = events_of(response)
            next(events)
            assert numbers(next(events)["data"]["rows"]) == [1]


def test_lines_as_they_come(queries: StoredQueries, server: WebServer) -> None:
    with queries.create("q") as log:
        address = f"{server.url}/queries/q/results?follow=true&format=jsonl"
        with httpx.stream("GET", address, headers=HEADERS) as response:
            lines = response.iter_lines()
            assert json.loads(next(lines))["watermark"] is None
            log.append(numbered(7, 2))
            records = [json.loads(next(lines)) for _ in range(2)]
            assert [one["row"]["n"] for one in records] == [7, 8]


def test_too_many_followers_are_refused(queries: StoredQueries, server: WebServer) -> None:
    with queries.create("q"), httpx.Client(headers=HEADERS) as http:
        address = f"{server.url}/queries/q/results?follow=true"
        requests = [http.build_request("GET", address) for _ in range(4)]
        responses = [http.send(one, stream=True) for one in requests]
        assert [one.status_code for one in responses] == [200, 200, 200, 429]
        for one in responses:
            one.close()
        wait_for(lambda: queries.followers.taken == 0)
        with http.stream("GET", address) as response:
            assert response.status_code == 200


def stands_still(count: Callable[[], int]) -> bool:
    """Whether a number is the same after a second."""
    before = count()
    time.sleep(1.0)
    return count() == before


def test_nothing_is_read_ahead_of_a_client_that_does_not_read(
    queries: StoredQueries, server: WebServer
) -> None:
    with queries.create("q") as log:
        for first in range(0, 400_000, 20_000):
            log.append(numbered(first, 20_000))
        request = (
            f"GET /queries/q/results?follow=true&from=start&format=arrow HTTP/1.1\r\n"
            f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        )
        results = queries.results("q")
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(request.encode())
            wait_for(lambda: results.shared.done > 0)
            wait_for(lambda: stands_still(lambda: results.shared.done))
            # A chunk of 5000 rows is 120 kB, read and encoded: the sockets hold a few of them.
            assert results.shared.done < 120
            assert queries.followers.taken == 1
        wait_for(lambda: queries.followers.taken == 0)
        assert results.watcher.waiting == 0


def test_a_follower_that_goes_away_is_forgotten(queries: StoredQueries, server: WebServer) -> None:
    with queries.create("q"):
        results = queries.results("q")
        with httpx.stream(
            "GET", f"{server.url}/queries/q/results?follow=true", headers=HEADERS
        ) as response:
            lines = response.iter_lines()
            next(lines)
            wait_for(lambda: results.watcher.waiting == 1)
        wait_for(lambda: results.watcher.waiting == 0 and queries.followers.taken == 0)


def test_the_answer_over_http(queries: StoredQueries, server: WebServer) -> None:
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 1, 1, 2), ("b", 2, 7, 1)), watermark=5)
        answer = get(server, "/queries/q/answer").json()
        assert answer["rows"] == [{"k": "a", "n": 1}] * 2
        assert answer["instant"] == "1970-01-01T00:00:00.000004Z"
        assert answer["is_cut"] is False
        later = get(server, f"/queries/q/results?offset={answer['offset']}").json()
        assert [(row["k"], row["_diff"]) for row in later["rows"]] == [("b", 1)]
        arrow = get(server, "/queries/q/answer", Accept=ARROW)
        with pa.ipc.open_stream(BytesIO(arrow.content)) as reader:
            batch = reader.read_next_batch_with_custom_metadata()
            assert batch.custom_metadata[b"instant"] == b"4"
            assert batch.batch.num_rows == 2


def test_many_followers_cost_little_more_than_one(queries: StoredQueries) -> None:
    async def follow(count: int, log_of: str) -> int:
        results = queries.results(log_of)
        got = [0] * count

        async def one(number: int) -> None:
            async for chunk in results.follow(None):
                await results.encoded("sse", chunk, lambda _: b"x")
                got[number] += chunk.rows.num_rows
                if got[number] == 50:
                    return

        tasks = [asyncio.create_task(one(number)) for number in range(count)]
        while results.watcher.waiting < count:
            await asyncio.sleep(0.01)
        for first in range(0, 50, 10):
            log.append(numbered(first, 10))
            await until(lambda wanted=first + 10: got == [wanted] * count)  # type: ignore[misc]
        await asyncio.gather(*tasks)
        assert got == [50] * count
        return results.shared.done

    with queries.create("one") as log:
        alone = asyncio.run(follow(1, "one"))
    with queries.create("many") as log:
        together = asyncio.run(follow(100, "many"))
    assert together <= alone + 6


def test_heartbeats_while_nothing_happens(queries: StoredQueries) -> None:
    async def listen() -> list[object]:
        telling = tell(
            queries.results("q"), None, lambda: queries.status("q"), max_rows=10, heartbeat=0.05
        )
        events = [await anext(telling) for _ in range(3)]
        await telling.aclose()
        return events

    with queries.create("q") as log:
        log.append(numbered(0, 1))
        first, *rest = asyncio.run(listen())
        assert not isinstance(first, Heartbeat)
        assert all(isinstance(one, Heartbeat) for one in rest)


def test_a_first_chunk_may_take_longer_than_a_heartbeat(
    queries: StoredQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listen() -> Event:
        results = queries.results("q")
        follow = results.follow

        async def follow_late(*given: Any, **named: Any) -> AsyncGenerator[Chunk, None]:
            await asyncio.sleep(0.1)
            async for chunk in follow(*given, **named):
                yield chunk

        monkeypatch.setattr(results, "follow", follow_late)
        telling = tell(results, None, lambda: queries.status("q"), max_rows=10, heartbeat=0.01)
        first = await anext(telling)
        await telling.aclose()
        return first

    with queries.create("q"):
        assert isinstance(asyncio.run(listen()), Chunk)


def test_who_follows_is_told_that_the_server_stops(queries: StoredQueries) -> None:
    async def follow() -> list[Event]:
        error = ClosedError("the server is stopping")
        telling = tell(
            queries.results("q"),
            None,
            lambda: queries.status("q"),
            max_rows=10,
            ending=lambda: error,
        )
        return [event async for event in telling]

    with queries.create("q"):
        *_, last = asyncio.run(follow())
    assert isinstance(last, End)
    assert isinstance(last.error, ClosedError)


@pytest.mark.parametrize("how", ["revoked", "without the scope"])
def test_who_follows_is_told_that_the_token_has_ended(
    queries: StoredQueries, server: WebServer, how: str
) -> None:
    records: list[dict[str, Any]] = []
    with queries.create("q") as log:
        log.append(numbered(0, 3))
        path = f"{server.url}/queries/q/results?follow=true&format=jsonl&from=start"
        with httpx.stream("GET", path, headers=HEADERS, timeout=LONG) as answer:
            for line in filter(None, answer.iter_lines()):
                records.append(json.loads(line))
                queries.token = (
                    None if how == "revoked" else StoredToken("test", "", frozenset(), 0, None)
                )
                if len(records) == 1:
                    log.append(numbered(3, 3))
    assert records[-1]["end"]["error"]["kind"] == (
        "UnauthorizedError" if how == "revoked" else "ForbiddenError"
    )
    assert len(records) < 6, "nothing that came later"


def test_followers_that_come_and_go_while_rows_come(
    queries: StoredQueries, server: WebServer
) -> None:
    """Each goes on at its last id, and so gets every row once."""
    stop = threading.Event()

    def write() -> None:
        with queries.create("q") as log:
            for first in range(0, 300, 3):
                log.append(numbered(first, 3))
                time.sleep(0.01)
            stop.wait(LONG)

    writer = threading.Thread(target=write)
    writer.start()
    wait_for(lambda: Path(queries.log_of("q"), "layout.json").exists())
    got: list[int] = []
    headers = dict(HEADERS)
    while len(got) < 300:
        address = f"{server.url}/queries/q/results?follow=true&from=start"
        with httpx.stream("GET", address, headers=headers) as response:
            for event in events_of(response):
                if event["event"] == "rows":
                    got += numbers(event["data"]["rows"])
                    headers["Last-Event-ID"] = event["id"]
                    break
    stop.set()
    writer.join()
    assert got == list(range(300))


def test_a_client_that_takes_nothing_is_let_go_in_the_end() -> None:
    closed: list[str] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append("pieces")

    async def stuck(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    async def silent() -> Any:
        await asyncio.sleep(60)

    response = FollowingResponse(pieces(), "text/plain", lambda: closed.append("place"), 0.05)
    asyncio.run(response({"type": "http"}, silent, stuck))
    assert closed == ["pieces", "place"]
