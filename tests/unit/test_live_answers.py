"""Live answers: those of an oracle at every instant, whatever comes, and whatever is cut off."""

from __future__ import annotations

import random
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import nilometer as nm
from nilometer.client import Answer, Page, Query, Rows
from nilometer.client.arrow_messages import Batch
from nilometer.client.live_display import SECONDS
from nilometer.client.live_rows import CurrentAnswer, NewestRows
from nilometer.errors import (
    ClosedError,
    InputError,
    LogError,
    NilometerError,
    TimeLimitError,
    UnreachableError,
)
from nilometer.log.options import Fsync, LogOptions
from tests.patience import LONG, wait_for
from tests.results_server import (
    CHANGES,
    TOKEN,
    StoredQueries,
    WebServer,
    changes,
    numbered,
)
from tests.unit.test_results_answer import Change, fold, make_changelog

APPEND = {"name": "q", "statement": "SELECT …", "emits": "append"}
CHANGELOG = {**APPEND, "emits": "changelog"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = pa.schema([CHANGES.field("k"), CHANGES.field("n")])


def counted(rows: Rows) -> Counter[Any]:
    return Counter((row["k"], row["n"]) for row in rows)


def numbers(rows: Rows) -> list[int]:
    return [row["n"] for row in rows]


def reaches(watermark: int) -> Any:
    """Whether an answer is that of a watermark."""
    instant = EPOCH + timedelta(microseconds=watermark - 1)
    return lambda rows: rows.instant == instant


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_every_picture_is_the_answer_of_one_instant(seed: int, data: st.DataObject) -> None:
    log = make_changelog(seed)
    seen: list[Change] = []
    current = CurrentAnswer(Answer(PLAIN.empty_table()))
    for batch, watermark in log.batches:
        seen += batch
        cut = data.draw(st.integers(0, len(batch)))
        said = {} if watermark is None else {"watermark": str(watermark)}
        before = counted(current.rows())
        current.take(Batch(changes(*batch[:cut]), {**said, "at_end": "false"}))
        assert counted(current.rows()) == before
        current.take(Batch(changes(*batch[cut:]), {**said, "at_end": "true"}))
        now = float("-inf") if watermark is None else watermark
        assert counted(current.rows()) == fold(seen, now)


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_the_newest_rows(sizes: list[int], newest: int) -> None:
    kept, total = NewestRows(Page(pa.Table.from_batches([numbered(0, 5)])), newest), 5
    for size in sizes:
        assert kept.take(Batch(numbered(total, size), {})) == (size > 0)
        total += size
        assert numbers(kept.rows()) == list(range(total))[-newest:]


def test_values_that_sql_takes_for_the_same_cancel_out() -> None:
    schema = pa.schema([("v", pa.list_(pa.float64())), *list(CHANGES)[2:]])
    current = CurrentAnswer(Answer(pa.schema([schema.field("v")]).empty_table()))
    rows = [([float("nan"), 0.0], 1), ([1.0, None], 1), ([float("nan"), -0.0], -1)]
    records = [{"v": v, "_time": EPOCH, "_diff": diff} for v, diff in rows]
    current.take(Batch(pa.RecordBatch.from_pylist(records, schema), {"watermark": "1"}))
    assert list(current.rows()) == [{"v": [1.0, None]}]
    with pytest.raises(LogError, match="retracts a row that it never emitted"):
        current.take(Batch(pa.RecordBatch.from_pylist(records[2:], schema), {"watermark": "2"}))


@pytest.mark.parametrize("seed", range(3))
def test_a_live_answer_while_the_server_is_started_again(
    queries: StoredQueries, server: WebServer, client: nm.Client, seed: int
) -> None:
    choose = random.Random(seed)
    held: list[tuple[str | None, int]] = []
    events: list[Change] = []
    with queries.create("q", CHANGES) as log:
        log.append(changes(("a", 0, 0, 1)), watermark=1)
        held, events = [("a", 0)], [("a", 0, 0, 1)]
        with Query(client, CHANGELOG).live(patience=LONG) as live:
            for time in range(1, 40):
                batch: list[Change] = []
                for _ in range(choose.randint(0, 3)):
                    if held and choose.random() < 0.5:
                        batch.append((*held.pop(choose.randrange(len(held))), time, -1))
                    else:
                        held.append((choose.choice(["a", "b", None]), choose.randint(0, 3)))
                        batch.append((*held[-1], time, 1))
                events += batch
                ahead = choose.random() < 0.3
                log.append(changes(*batch) if batch else None, watermark=time + (not ahead))
                if time % 13 == 0:
                    server.cut()
                    server.start()
                if time % 5 == 0:
                    reached = time + (not ahead)
                    rows = live.wait(reaches(reached), timeout=LONG)
                    assert counted(rows) == fold(events, reached)
            log.append(None, watermark=50)
            rows = live.wait(reaches(50), timeout=LONG)
            assert counted(rows) == Counter(held)
            assert live.to_arrow().schema == PLAIN
            assert len(live.to_pandas()) == len(live) == len(held)


def test_a_base_stands_for_changes_that_are_gone(
    queries: StoredQueries, server: WebServer, client: nm.Client
) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)
    with queries.create("q", CHANGES, options) as log:
        log.append(changes(("a", 1, 0, 1)), watermark=1)
        with Query(client, CHANGELOG).live(patience=LONG) as live:
            server.cut()
            for n in range(1, 40):
                log.append(changes(("a", n, n, -1), ("a", n + 1, n, 1)), watermark=n + 1)
            while log.pack():
                pass
            assert numbers(live.rows()) == [1]
            server.start()
            assert numbers(live.wait(reaches(40), timeout=LONG)) == [40]


def test_an_answer_that_is_too_long_to_be_given_at_once(
    queries: StoredQueries, client: nm.Client
) -> None:
    rows = [("a", n, n % 7, 1) for n in range(12_000)]
    with queries.create("q", CHANGES) as log:
        for at in range(0, len(rows), 4000):
            log.append(changes(*rows[at : at + 4000]), watermark=7 if at == 8000 else 0)
        with Query(client, CHANGELOG).live() as live:
            picture = live.wait(lambda rows: not rows.is_cut, timeout=LONG)
            assert counted(picture) == fold(rows, 7)


def test_live_rows_of_results_that_are_only_added_to(
    queries: StoredQueries, server: WebServer, client: nm.Client
) -> None:
    options = LogOptions(fsync=Fsync.NEVER, segment=1024, history=0)
    with queries.create("q", options=options) as log:
        log.append(numbered(0, 8))
        with Query(client, APPEND).live(newest=5, patience=LONG) as live:
            assert numbers(live.rows()) == [3, 4, 5, 6, 7]
            log.append(numbered(8, 2))
            picture = live.wait(lambda rows: numbers(rows)[-1] == 9, timeout=LONG)
            assert numbers(picture) == [5, 6, 7, 8, 9]
            server.cut()
            for first in range(10, 90):
                log.append(numbered(first, 1))
            log.trim()
            server.start()
            picture = live.wait(lambda rows: numbers(rows)[-1] == 89, timeout=LONG)
            kept = numbers(Query(client, APPEND).page("start"))
            assert kept[-1] == 89
            assert numbers(picture) == kept[-5:]
            log.append(numbered(90, 4))
            picture = live.wait(lambda rows: numbers(rows)[-1] == 93, timeout=LONG)
            assert numbers(picture) == [89, 90, 91, 92, 93]


def test_what_ends_a_live_answer(queries: StoredQueries, server: WebServer) -> None:
    with nm.Client(server.url, TOKEN) as client, queries.create("q") as log:
        query = Query(client, APPEND)
        log.append(numbered(0, 2))
        with pytest.raises(InputError, match="at least one row"):
            query.live(newest=0)
        live = query.live()
        with pytest.raises(TimeLimitError, match="q did not meet the condition in time"):
            live.wait(lambda rows: len(rows) > 2, timeout=0.05)
        waiting: list[NilometerError] = []

        def wait() -> None:
            with pytest.raises(ClosedError, match="the live answer of q is closed") as error:
                live.wait(lambda rows: len(rows) > 2, timeout=LONG)
            waiting.append(error.value)

        thread = threading.Thread(target=wait)
        thread.start()
        live.close()
        live.close()
        thread.join(LONG)
        assert waiting
        wait_for(lambda: not live._thread.is_alive())
        log.append(numbered(2, 1))
        assert (live.is_closed, numbers(live.rows()), live.error) == (True, [0, 1], None)
        gone = query.live(patience=0.2)
        server.cut()
        with pytest.raises(UnreachableError):
            gone.wait(lambda rows: len(rows) > 5, timeout=LONG)
        with pytest.raises(UnreachableError):
            gone.to_arrow()
        assert "not current: the server" in repr(gone)
        assert "not current: the server" in gone._repr_html_()
        gone.close()
        assert numbers(gone.rows()) == [0, 1, 2]
        with pytest.raises(UnreachableError):
            query.live()


def test_live_answers_end_with_their_client(queries: StoredQueries, server: WebServer) -> None:
    with queries.create("q") as log:
        log.append(numbered(0, 2))
        with nm.Client(server.url, TOKEN) as client:
            several = [Query(client, APPEND).live() for _ in range(3)]
            several[0].close()
        for live in several:
            assert (live.is_closed, live.error, len(live)) == (True, None, 2)
            wait_for(lambda live=live: not live._thread.is_alive())
        wait_for(lambda: not queries.followers.taken)


class _Timed(CapturingDisplayPublisher):
    """Notes when something was shown."""

    def publish(self, *given: Any, **more: Any) -> None:
        super().publish(*given, **more)
        self.outputs[-1]["at"] = monotonic()


def test_a_notebook_shows_it_as_it_changes(
    queries: StoredQueries, client: nm.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(display_pub_class=_Timed)
    shell.history_manager.enabled = False
    try:
        with queries.create("q") as log:
            log.append(numbered(0, 1))
            with Query(client, APPEND).live() as live:
                shell.user_ns["live"] = live
                assert shell.run_cell("live").success
                for first in range(1, 200):
                    log.append(numbered(first, 1))
                live.wait(lambda rows: len(rows) == 200, timeout=LONG)
                shown = shell.display_pub.outputs
                wait_for(lambda: "<p>200 rows" in shown[-1]["data"]["text/html"])
                assert "live, the newest 1000 rows" in shown[-1]["data"]["text/plain"]
            wait_for(lambda: "<p>closed</p>" in shown[-1]["data"]["text/html"])
            times = [one["at"] for one in shown]
            assert all(b - a >= SECONDS for a, b in pairwise(times[:-1]))  # at once when closed
            assert len({one["transient"]["display_id"] for one in shown}) == 1
            assert [one["update"] for one in shown] == [False] + [True] * (len(shown) - 1)
    finally:
        InteractiveShell.clear_instance()
