"""What somebody new here sees: figures that agree, rows in order, words that are explained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, WIDE, Visiting
from tests.browser.visit import Visit
from tests.patience import Patience, wait_for
from tests.server_at_work import ServerAtWork

_PAINTED = """(chart) => Object.fromEntries(getElement(chart.id.slice(1)).chart.getOption().series
    .map((one) => [one.name, one.itemStyle.color]))"""
_LABEL = """(chart) => {
  const live = getElement(chart.id.slice(1));
  const newest = Math.max(...Array.from(live.series.values(), (one) => one.at(-1)[0]));
  return live.tooltip([{ axisValue: newest, seriesName: "none", marker: "" }]);
}"""
_AXIS = """(chart) => {
  const { show, axisLine } = getElement(chart.id.slice(1)).chart.getOption().xAxis[0];
  return [show, axisLine.onZero];
}"""
_UNTIL = "(chart) => getElement(chart.id.slice(1)).until()"
_TIMES = """(table) => Array.from(table.querySelectorAll("tbody tr"),
    (row) => row.lastElementChild.title)"""


class _Warm(BaseHTTPRequestHandler):
    """A sensor."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"v": 21.5}).encode())

    def log_request(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def readings(server: ServerAtWork) -> Iterator[ServerAtWork]:
    """A query that only adds rows, and one whose answer is always empty."""
    server.sql("CREATE QUERY readings AS SELECT * FROM Weather")
    server.sql(
        "CREATE QUERY never AS SELECT station, COUNT(*) AS n FROM Weather [RANGE 5 SECONDS] "
        "WHERE wind > 1e9 GROUP BY station"
    )
    yield server
    for name in ("readings", "never"):
        server.sql(f"DROP QUERY {name}")


def test_a_chart_tells_every_line_in_few_digits_and_paints_names_alike(
    readings: ServerAtWork, visit: Visiting
) -> None:
    painted: list[dict[str, str]] = []
    for _ in range(2):
        at = visit()
        at.open("/console/queries/readings")
        at.wait_for_points()
        chart, patience = at.page.locator(".nm-chart"), Patience(60)
        while len(lines_drawn := chart.evaluate(_PAINTED)) < 3:
            assert not patience.ended, f"lines of {lines_drawn} only"
            at.page.wait_for_timeout(200)
        painted.append(lines_drawn)
        label: str = chart.evaluate(_LABEL)
        first, *lines = label.split("\n")
        assert first.endswith(" UTC")
        assert [one.split(":")[0].strip() for one in lines] == ["harbour", "hill", "roof"]
        assert all(len(one.split(": ")[1]) <= 7 for one in lines), label
    assert painted[0] == painted[1]
    assert len(set(painted[0].values())) == 3


def test_rows_stand_in_the_order_of_time_and_say_their_zone(
    readings: ServerAtWork, visit: Visiting
) -> None:
    at = visit()
    at.open("/console/queries/readings")
    expect(at.page.locator(".nm-table tbody tr").nth(5)).to_be_attached()
    table, patience, seen = at.page.locator(".nm-table"), Patience(60), set()
    while len(seen) < 3:  # as new rows come, too
        times: list[str] = table.evaluate(_TIMES)
        assert len(times) > 5
        assert times == sorted(times, reverse=True)
        seen.add(times[0])
        assert not patience.ended, "no new rows came"
        at.page.wait_for_timeout(200)
    expect(at.page.locator(".nm-zone")).to_contain_text("Times are UTC")
    expect(at.page.locator(".nm-results .nm-figures")).to_contain_text("20")  # a date, of any day


def test_figures_stand_once_on_the_page_of_a_query(readings: ServerAtWork, visit: Visiting) -> None:
    at = visit()
    at.open("/console/queries/readings")
    at.wait_for_rows()
    assert at.page.get_by_text("running", exact=True).locator("visible=true").count() == 1
    panel = at.page.locator(".nm-results .nm-figures")
    expect(panel).to_contain_text("complete up to")
    assert "rows" not in panel.inner_text()


def test_an_empty_answer_is_no_waiting(readings: ServerAtWork, visit: Visiting) -> None:
    at = visit()
    at.open("/console/queries/never")
    expect(at.page.locator(".nm-table .nm-empty")).to_have_text("The answer is empty at present.")


def test_an_axis_stands_below_all_points_and_not_in_an_empty_chart(
    readings: ServerAtWork, visit: Visiting
) -> None:
    at = visit()
    at.open("/console/queries/never")
    expect(at.page.locator(".nm-table .nm-empty")).to_be_visible()
    assert at.page.locator(".nm-chart").evaluate(_AXIS) == [False, False]
    at.open("/console/queries/readings")
    at.wait_for_points()
    assert at.page.locator(".nm-chart").evaluate(_AXIS) == [True, False]


def test_a_query_that_is_stopped_does_not_wait(server: ServerAtWork, visit: Visiting) -> None:
    server.sql("CREATE QUERY resting AS SELECT * FROM Weather WHERE wind > 1e9")
    server.sql("STOP QUERY resting")
    at = visit()
    at.open("/console/queries/resting")
    expect(at.page.locator(".nm-table .nm-empty")).to_contain_text("It is stopped.")
    server.sql("DROP QUERY resting")


def test_words_are_explained_by_keyboard(readings: ServerAtWork, visit: Visiting) -> None:
    at = visit(size=NARROW)
    at.open("/console/queries/never")
    mark = at.page.locator(".nm-term[data-tip^='watermark']").first
    mark.focus()
    shown = "getComputedStyle(document.activeElement, '::after').content"
    assert "assumed to have arrived" in at.page.evaluate(shown)
    at.photograph("term-light-390")
    at.open("/console/queries")
    at.page.get_by_role("link", name="What do the words mean?").click()
    at.page.wait_for_url("**/console/glossary")
    expect(at.page.get_by_text("changelog", exact=True)).to_be_visible()


def test_an_unknown_page_is_a_kind_page(server: ServerAtWork, visit: Visiting) -> None:
    at = visit()
    for path in ("/nothing", "/console/nothing"):
        at.page.goto(server.url + path)
        expect(at.page.get_by_role("heading")).to_have_text("There is no page here")
    at.page.get_by_role("link", name="All queries").click()
    at.page.wait_for_url("**/console/queries")
    at.problems[:] = [one for one in at.problems if "404" not in one]
    asked = httpx.get(server.url + "/console/nothing", headers={"Accept": "text/html"})
    assert asked.status_code == 303  # who has no session is asked for one first


def _node(page: Page, name: str) -> Any:
    return page.locator("a.item.box", has_text=name)


def test_everything_in_the_network_can_be_opened(readings: ServerAtWork, visit: Visiting) -> None:
    at = visit()
    at.open("/console/sensors")
    _node(at.page, "readings").click()
    at.page.wait_for_url("**/console/queries/readings")
    at.open("/console/sensors")
    _node(at.page, "Weather").last.click()
    at.page.wait_for_url("**/console/streams/Weather")
    expect(at.page.get_by_role("link", name="readings")).to_be_visible()
    expect(at.page.locator(".nm-sheet").first).to_contain_text("temperature")
    at.photograph("stream-light-1280")
    at.open("/console/streams/Nothing")
    expect(at.page.locator(".nm-card.nm-empty")).to_contain_text("there is no stream Nothing")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_page_of_a_stream_draws_its_readings(
    readings: ServerAtWork, visit: Visiting, theme: str, size: tuple[int, int]
) -> None:
    at = visit(scope="read", size=size, theme=theme)
    at.open("/console/streams/Weather")
    first = at.wait_for_points()
    assert at.wait_for_points(after=first) > first
    assert {one["name"] for one in at.chart()} == {"harbour", "hill", "roof"}
    too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert at.page.evaluate(too_wide) is False
    at.photograph(f"stream-chart-{theme}-{size[0]}", whole=True)


def test_silence_before_a_page_was_opened_is_seen_in_its_chart(
    server: ServerAtWork, visit: Visiting
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Warm) as sensor:
        Thread(target=sensor.serve_forever, daemon=True).start()
        server.sql(
            "CREATE STREAM Once (v DOUBLE, HISTORY 1 HOUR) FROM http WITH "
            f"(address = 'http://127.0.0.1:{sensor.server_port}/', interval = '200 ms')"
        )
        server.sql("CREATE QUERY of_once AS SELECT v FROM Once")
        wait_for(lambda: len(server.sql("SELECT v FROM of_once")["rows"]) > 5)
        sensor.shutdown()
    shown = "SHOW SENSORS FROM Once"
    wait_for(lambda: server.sql(shown)["rows"][0]["state"] == "waiting", every=0.05)
    at = visit(scope="read")
    at.page.wait_for_timeout(3000)
    for path in ("/console/streams/Once", "/console/queries/of_once"):
        at.open(path)
        newest, patience = at.wait_for_points(), Patience(60)
        while (until := at.page.locator(".nm-chart").evaluate(_UNTIL) or 0) - newest < 3000:
            assert not patience.ended, f"the chart ends at {until}, its points at {newest}"
            at.page.wait_for_timeout(200)
    server.sql("DROP QUERY of_once")
    server.sql("DROP STREAM Once")


def test_filters_stay_when_a_page_is_loaded_anew(server: ServerAtWork, visit: Visiting) -> None:
    at = visit()
    at.open("/console/sensors")
    words = at.page.get_by_label("Name, reading or error")
    words.fill("camera2")
    at.page.wait_for_url("**/console/sensors?words=camera2")
    _reload(at)
    expect(words).to_have_value("camera2")
    expect(at.page.locator("#sensors tbody tr")).to_have_count(1)


def _reload(at: Visit) -> None:
    at.page.reload()
    at.page.wait_for_selector(".nm-main")
    at.page.wait_for_function("window.socket?.connected")


def test_health_tells_what_is_stored_and_what_needs_somebody(
    readings: ServerAtWork, visit: Visiting
) -> None:
    answer = httpx.get(f"{readings.url}/storage", headers=readings.headers("read"))
    assert answer.json()["rows"][-1]["name"] == "(disk)"
    at = visit(scope="read")
    at.open("/console/health")
    expect(at.page.locator(".nm-figures")).to_contain_text("free on the disk")
    log = at.page.get_by_role("link", name="readings", exact=True)
    expect(log).to_have_attribute("href", "/console/queries/readings")
    at.page.get_by_role("link", name="Weather", exact=True).click()
    expect(at.page.locator("h2")).to_have_text("Weather")
