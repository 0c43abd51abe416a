"""Queries, their windows and health, and the sensor network, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NARROW, WIDE, Visiting
from tests.browser.visit import WAIT
from tests.patience import LONG, Patience, wait_for
from tests.server_at_work import ServerAtWork

_EVIL = "<img src=x onerror=bad>"
_JOIN = """SELECT A.obj_id, A.ts AS first, C.ts AS third FROM Camera1 A, Camera2 B, Camera3 C
WINDOW (A, B) = 2 SECONDS AND DWINDOW (B, C) = 3 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id"""
_FARM = """CREATE SENSOR TABLE Farm (place STRING, Reading STREAM(temperature DOUBLE)
FROM http WITH (interval = '1s'))"""
_READ = "SELECT place, Reading.temperature FROM Farm"
_POINTS = """(chart) => getElement(chart).chart.getOption().series
    .map((one) => (one.data ?? []).length)"""


class _NoNumber(BaseHTTPRequestHandler):
    """A sensor whose temperature is not a number."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"temperature": _EVIL}).encode())

    def log_request(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def network(server: ServerAtWork) -> Iterator[ServerAtWork]:
    """A join that runs, a sensor that cannot be reached, and one whose readings are no numbers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _NoNumber) as odd:
        Thread(target=odd.serve_forever, daemon=True).start()
        server.sql(_FARM)
        server.sql(
            "INSERT INTO Farm VALUES ('barn', 'http://127.0.0.1:9/'), "
            f"('{_EVIL}', 'http://127.0.0.1:{odd.server_port}/')"
        )
        server.sql(f"CREATE QUERY passing AS {_JOIN}")
        server.sql(f"CREATE QUERY trouble AS {_READ}")
        _wait_for_health(server)
        yield server
        server.sql("DROP QUERY trouble")
        odd.shutdown()


def _wait_for_health(server: ServerAtWork) -> None:
    """Until the join has finished a micro-batch: from then on there is something to see."""

    def figures() -> int:
        answer = httpx.get(
            f"{server.url}/queries/passing/health", headers=server.headers(), timeout=LONG
        )
        return len(answer.json())

    wait_for(lambda: figures() > 1, 120, every=0.2)


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_pages_fit(
    network: ServerAtWork, visit: Visiting, theme: str, size: tuple[int, int]
) -> None:
    at = visit(size=size, theme=theme)
    for name, path, seen in (
        ("queries", "/console/queries", "li.nm-query"),
        ("windows", "/console/queries/passing?tab=windows", ".edge.derived"),
        ("plan", "/console/queries/passing?tab=plan", ".nm-step"),
        ("health", "/console/queries/passing?tab=health", ".nm-gauge canvas"),
        ("sensors", "/console/sensors", ".nm-svg .item"),
    ):
        at.open(path)
        at.page.wait_for_selector(seen)
        too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert at.page.evaluate(too_wide) is False
        at.photograph(f"{name}-{theme}-{size[0]}")


def test_a_sensor_in_trouble_is_seen_and_texts_stay_texts(
    network: ServerAtWork, visit: Visiting
) -> None:
    at = visit()
    at.open("/console/sensors")
    rows = at.page.locator(".nm-sheet tbody tr")
    barn = rows.filter(has_text="barn")
    expect(barn.locator(".nm-state")).to_have_text("waiting", timeout=WAIT)
    expect(barn).to_contain_text("ConnectionRefusedError")
    expect(rows.filter(has_text=_EVIL).first).to_be_visible()
    mark = at.page.locator(".item", has_text="barn")
    mark.focus()
    expect(at.page.locator(".nm-note")).to_contain_text("Sensor barn of Farm: waiting")
    expect(at.page.locator("a[href='/console/queries/passing']")).to_have_count(1)

    at.page.get_by_label("Name, reading or error").fill("barn")
    expect(rows).to_have_count(1)
    letters = at.page.get_by_role("button", name="Dead letters")
    expect(letters).to_be_enabled(timeout=WAIT)
    letters.click()
    expect(at.page.get_by_role("dialog").locator("pre", has_text=_EVIL).first).to_be_visible()
    at.photograph("dead-letters-light-1280")
    assert at.page.locator("img[src=x]").count() == 0


def test_who_may_only_read_is_told_so(network: ServerAtWork, visit: Visiting) -> None:
    at = visit(scope="read")
    at.open("/console/queries")
    for name in ("Stop passing", "Drop passing"):
        expect(at.button(name)).to_be_disabled()


def test_a_query_that_is_not_there(visit: Visiting) -> None:
    at = visit()
    at.open("/console/queries/nothing%3Cb%3E")
    expect(at.page.locator(".nm-card.nm-empty")).to_contain_text("there is no query nothing<b>")
    at.page.get_by_role("link", name="All queries").click()
    at.page.wait_for_url("**/console/queries")


def test_a_join_is_watched_stopped_started_and_dropped(
    network: ServerAtWork, visit: Visiting
) -> None:
    at = visit()
    at.open("/console/queries")
    at.page.get_by_role("link", name="passing").click()
    at.wait_for_rows()

    tab(at.page, "Windows")
    derived = at.page.locator(".edge.derived[tabindex]")
    expect(derived).to_have_count(1)
    expect(derived.locator("text")).to_have_text("−2s … 5s")
    expect(at.page.locator(".edge.written[tabindex]")).to_have_count(2)
    derived.focus()
    note = at.page.locator(".nm-note")
    expect(note).to_contain_text("C at most 5s after A, which follows from B at most 2s after A")
    expect(at.page.locator(".nm-sheet", has_text="Follows from")).to_contain_text("derived")
    tab(at.page, "Plan")
    expect(at.page.locator(".nm-step", has_text="Window join of 3 sources")).to_be_visible()

    tab(at.page, "Health")
    chart = at.page.locator(".nm-gauge .nm-echart").first
    expect(chart.locator("canvas")).to_be_visible()
    points = _wait_for_points(at.page, 1)
    assert len(set(points)) == 1  # rows in and rows out
    _wait_for_points(at.page, points[0] + 1)
    expect(at.page.locator(".nm-sheet", has_text="Buffered")).to_contain_text("B")

    phase = at.page.locator(".nm-query-head .nm-state")
    at.button("Stop passing").click()
    expect(phase).to_have_text("stopped", timeout=WAIT)
    at.button("Start passing").click()
    expect(phase).to_have_text("running", timeout=WAIT)
    at.button("Drop passing").click()
    at.button("Keep it").click()
    expect(at.page.get_by_role("dialog")).to_have_count(0)
    at.button("Drop passing").click()
    at.button("Drop it").click()
    expect(at.page.locator(".nm-card.nm-empty")).to_contain_text(
        "there is no query passing", timeout=WAIT
    )


def _wait_for_points(page: Page, least: int) -> list[int]:
    """Until every line of the first chart has so many points; how many each has."""
    patience = Patience(60)
    while True:
        points: list[int] = page.locator(".nm-gauge .nm-echart").first.evaluate(_POINTS)
        if min(points, default=0) >= least:
            return points
        assert not patience.ended, f"the chart did not get {least} points: {points}"
        page.wait_for_timeout(200)


_FIRST_PAGE = re.compile(r"^1 to 25 of \d+ queries")
_NEXT_PAGE = re.compile(r"^26 to \d+ of \d+ queries")
_OF_TEN = re.compile(r"^10 queries, \d+ in all")


def test_many_queries_are_found_by_words_pages_and_groups(
    network: ServerAtWork, visit: Visiting
) -> None:
    made = [f"many{number:02d}" for number in range(30)]
    for name in made:
        network.sql(f"CREATE QUERY {name} AS SELECT obj_id FROM Camera1 WHERE obj_id > 5")
    at = visit()
    at.open("/console/queries")
    page = at.page
    expect(page.get_by_text(_FIRST_PAGE)).to_be_visible(timeout=WAIT)
    assert page.locator(".nm-query").count() == 25
    _insist(page.get_by_label("Next page").click, page.get_by_text(_NEXT_PAGE))
    words = page.get_by_label("Name or text")
    _insist(lambda: words.fill("many2"), page.get_by_text(_OF_TEN))
    expect(page.locator(".nm-query")).to_have_count(10)
    page.wait_for_url("**/console/queries?words=many2")
    page.reload()  # as a page does that was cut off for long
    expect(page.get_by_text(_OF_TEN)).to_be_visible()
    expect(words).to_have_value("many2")
    _insist(lambda: words.fill(""), page.get_by_text(_FIRST_PAGE))

    def group() -> None:
        page.get_by_label("Group by").click()
        page.get_by_role("option", name="streams").click()

    _insist(group, page.locator(".nm-group").first)
    at.photograph("many-queries-light-1280", whole=True)
    for name in made:
        network.sql(f"DROP QUERY {name}")
    expect(page.locator(".nm-query", has_text="many")).to_have_count(0, timeout=WAIT)


def _insist(act: Callable[[], None], seen: Locator) -> None:
    """Do something until it is seen: a machine that is busy may load the page anew meanwhile."""
    for _ in range(4):
        act()
        try:
            expect(seen).to_be_visible(timeout=30_000)
        except AssertionError:
            continue
        return
    expect(seen).to_be_visible()
