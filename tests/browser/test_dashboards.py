"""Dashboards in a real browser: made by a form, zoomed, shared by a link, and only looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import NARROW, Visiting
from tests.browser.visit import Visit
from tests.server_at_work import ServerAtWork

WINDOW = (1400, 900)
PANELS: list[dict[str, Any]] = [
    {"title": "Wind", "kind": "line", "stream": "Weather", "y": ["wind"], "series": "station"},
    {"title": "Now", "kind": "stat", "stream": "Weather", "y": ["wind"], "unit": "m/s",
     "series": "station"},
    {"title": "Mean", "kind": "line", "query": "means", "y": ["mean"], "series": "station"},
    {"title": "Heat", "kind": "heat map", "stream": "Weather", "y": ["temperature"],
     "series": "station"},
    {"title": "Rows", "kind": "bar", "select": "SELECT _time, station FROM Weather",
     "combine": "count", "series": "station"},
    {"title": "By station", "kind": "bar", "query": "means", "x": "station", "y": ["mean"],
     "width": 4},
    {"title": "Newest", "kind": "table", "stream": "Weather", "width": 4},
    {"title": "Places", "kind": "map", "select": "SELECT station, length(station) AS x, "
     "ascii(station) AS y, max(wind) AS wind FROM Weather GROUP BY 1, 2, 3", "x": "x",
     "y": ["y"], "series": "station", "value": "wind", "width": 4},
]  # fmt: skip
_CHART = """(chart) => getElement(chart.id.slice(1)).chart.getOption()"""


@pytest.fixture(scope="module")
def weather(server: ServerAtWork) -> Iterator[None]:
    """A query whose answer changes, so that the stream is read, too."""
    server.sql(
        "CREATE QUERY means AS SELECT station, AVG(temperature) AS mean "
        "FROM Weather [RANGE 10 SECONDS] GROUP BY station EMIT CHANGES EVERY 1 SECOND"
    )
    yield
    server.sql("DROP QUERY means")


def put(server: ServerAtWork, name: str, title: str, panels: list[dict[str, Any]]) -> None:
    answer = httpx.put(
        f"{server.url}/dashboards/{name}",
        json={"title": title, "panels": panels},
        headers=server.headers("write"),
    )
    assert answer.status_code == 200, answer.text


def panel(at: Visit, title: str) -> Locator:
    return at.page.locator(".nm-pane", has=at.page.get_by_role("heading", name=title, exact=True))


def options(at: Visit, title: str) -> dict[str, Any]:
    """What the chart of a panel draws."""
    chart = panel(at, title).locator(".nm-panel-chart")
    expect(chart).to_be_visible()
    at.page.wait_for_function(
        f"(c) => ({_CHART})(c)?.series?.length > 0", arg=chart.element_handle()
    )
    options: dict[str, Any] = chart.evaluate(_CHART)
    return options


def wait_for_axis(at: Visit, condition: str) -> None:
    """Until the axis of times of the first chart is as it should be."""
    chart = panel(at, "Wind").locator(".nm-panel-chart")
    expect(chart).to_be_visible()
    looked = f"(c) => {{ const x = ({_CHART})(c)?.xAxis?.[0]; return x && {condition}; }}"
    at.page.wait_for_function(looked, arg=chart.element_handle())


def dialog(at: Visit) -> Locator:
    return at.page.get_by_role("dialog")


def choose(at: Visit, label: str, option: str) -> None:
    dialog(at).get_by_label(label, exact=True).click()
    at.page.get_by_role("option", name=option, exact=True).click()


def test_a_dashboard_is_made_by_a_form(
    server: ServerAtWork, weather: None, visit: Visiting
) -> None:
    at = visit(scope="write", size=WINDOW)
    at.open("/console/dashboards")
    expect(at.page.get_by_text("There are no dashboards yet.")).to_be_visible()
    at.photograph("dashboards-none-light-1400")
    at.button("Start with an empty one").click()
    dialog(at).get_by_label("Title").fill("Weather at the harbour")
    expect(dialog(at).get_by_label("Name in its address")).to_have_value("weather-at-the-harbour")
    at.button("Create it").click()
    at.page.wait_for_url("**/console/dashboards/weather-at-the-harbour")
    at.button("Add the first panel").click()
    dialog(at).get_by_text("Stream", exact=True).click()
    choose(at, "Name", "Weather")
    expect(dialog(at).locator(".nm-preview .nm-panel-chart")).to_be_visible()
    dialog(at).get_by_label("Title", exact=True).fill("Temperature")
    at.photograph("dashboard-form-light-1400")
    at.button("Add it").click()
    expect(dialog(at)).to_have_count(0)
    assert {one["name"] for one in options(at, "Temperature")["series"]} == {
        "harbour",
        "hill",
        "roof",
    }
    kept = httpx.get(
        f"{server.url}/dashboards/weather-at-the-harbour", headers=server.headers("read")
    ).json()
    assert kept["panels"][0]["stream"] == "Weather"
    assert kept["panels"][0]["y"] == ["temperature"]
    at.button("More of Temperature").click()
    at.page.get_by_text("Edit", exact=True).click()
    expect(dialog(at).get_by_label("Title", exact=True)).to_have_value("Temperature")
    expect(dialog(at).locator(".nm-preview .nm-panel-chart")).to_be_visible()
    dialog(at).get_by_label("Title", exact=True).fill("Temperature")
    choose(at, "Width", "full")
    dialog(at).get_by_label("Unit").fill("°C")
    at.button("Change it").click()
    expect(dialog(at)).to_have_count(0)
    expect(panel(at, "Temperature")).to_have_attribute("style", re.compile("12"))
    assert options(at, "Temperature")["series"]


def test_panels_are_moved_and_deleted_and_dashboards_imported(
    server: ServerAtWork, weather: None, visit: Visiting
) -> None:
    at = visit(scope="write", size=WINDOW)
    put(server, "moved", "Moved", [{"title": "Temperature", "kind": "line", "stream": "Weather",
        "y": ["temperature"]}])  # fmt: skip
    at.open("/console/dashboards/moved")
    # A SELECT that is wrong says so in its own panel.
    at.button("Add panel").click()
    dialog(at).get_by_text("SELECT", exact=True).click()
    dialog(at).get_by_label("SELECT over what is stored").fill("SELECT nothing FROM Weather")
    dialog(at).get_by_label("Title", exact=True).fill("Wrong")
    choose(at, "Shown as", "table")
    at.button("Add it").click()
    expect(panel(at, "Wrong").get_by_role("alert")).to_contain_text("there is no column nothing")
    expect(panel(at, "Temperature").locator(".nm-panel-chart")).to_be_visible()
    at.button("More of Wrong").click()
    at.page.get_by_text("Move earlier").click()
    expect(at.page.locator(".nm-pane").first).to_contain_text("Wrong")
    at.button("More of Wrong").click()
    at.page.get_by_text("Delete", exact=True).click()
    at.button("Delete it").click()
    expect(at.page.locator(".nm-pane")).to_have_count(1)
    at.button("More of this dashboard").click()
    with at.page.expect_download() as download:
        at.page.get_by_text("Export as JSON").click()
    exported = json.loads(download.value.path().read_text())
    at.button("More of this dashboard").click()
    at.page.get_by_text("Delete dashboard").click()
    at.button("Delete it").click()
    at.page.wait_for_url("**/console/dashboards")
    assert at.page.get_by_role("link", name="Moved").count() == 0
    at.button("Import").first.click()
    dialog(at).get_by_label("Or its text (JSON)").fill("{")
    at.button("Import it").click()
    expect(dialog(at).get_by_role("alert").last).to_contain_text("cannot be read as JSON")
    dialog(at).get_by_label("Or its text (JSON)").fill(json.dumps(exported))
    at.button("Import it").click()
    at.page.wait_for_url("**/console/dashboards/moved")
    options(at, "Temperature")


def test_every_kind_of_panel_in_both_themes(
    server: ServerAtWork, weather: None, visit: Visiting
) -> None:
    put(server, "kinds", "Everything about the weather", PANELS)
    for size, theme in ((WINDOW, "light"), (WINDOW, "dark"), (NARROW, "dark"), (NARROW, "light")):
        at = visit(scope="admin", size=size, theme=theme)
        at.open("/console/dashboards/kinds?range=5m")
        for title in ("Wind", "Mean", "Heat", "Rows", "By station", "Places"):
            assert options(at, title)["series"]
        if size == NARROW:
            at.photograph(f"dashboard-top-{theme}-{size[0]}")
        expect(panel(at, "Now")).to_contain_text("m/s")
        expect(panel(at, "Newest").locator("tbody tr").first).to_be_attached()
        at.photograph(f"dashboard-{theme}-{size[0]}", whole=True)
        wide = at.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{theme} {size}: {wide} pixels too wide"


def test_a_range_is_zoomed_and_a_link_shows_the_same(
    server: ServerAtWork, weather: None, visit: Visiting
) -> None:
    put(server, "zoomed", "Zoomed", PANELS[:3])
    at = visit(scope="write", size=WINDOW)
    at.open("/console/dashboards/zoomed")
    at.button("5 min").click()
    at.page.wait_for_url("**/zoomed?range=5m")
    wait_for_axis(at, "x.max - x.min === 300000")
    box = panel(at, "Wind").locator(".nm-panel-chart").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    at.page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    at.page.mouse.down()
    at.page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=6)
    at.page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=6)
    at.page.mouse.up()
    expect(at.button("Back to live")).to_be_visible()
    at.page.wait_for_url(re.compile(r"/zoomed\?from=.*&to="))
    said = parse_qs(urlsplit(at.page.url).query)
    link = at.page.url.removeprefix(server.url)

    def axis(shown: Visit) -> list[float]:
        one = options(shown, "Wind")["xAxis"][0]
        return [one["min"], one["max"]]

    wait_for_axis(at, "x.max - x.min < 299000")
    here = axis(at)
    assert 60_000 < here[1] - here[0] < 180_000, said
    at.photograph("dashboard-zoomed-light-1400")
    other = visit(scope="read", size=WINDOW)
    other.open(link)
    assert axis(other) == here
    assert options(other, "Wind")["series"] == options(at, "Wind")["series"]
    at.button("Zoom out").click()
    wait_for_axis(at, f"x.max - x.min > {1.5 * (here[1] - here[0])}")
    at.button("Back to live").click()
    at.page.wait_for_url("**/zoomed?range=5m")


def test_who_only_reads_sees_and_cannot_edit(
    server: ServerAtWork, weather: None, visit: Visiting
) -> None:
    put(server, "shared", "Shared", PANELS[:1])
    at = visit(scope="read", size=WINDOW)
    at.open("/console/dashboards/shared?range=5m&refresh=5s")
    options(at, "Wind")
    assert at.button("Add panel").count() == 0
    at.button("More of Wind").click()
    expect(at.page.get_by_text("Open the stream")).to_be_visible()
    assert at.page.get_by_text("Edit", exact=True).count() == 0
    at.page.keyboard.press("Escape")
    at.button("More of this dashboard").click()
    expect(at.page.get_by_text("Copy link")).to_be_visible()
    assert at.page.get_by_text("Delete dashboard").count() == 0
    at.open("/console/dashboards")
    expect(at.page.get_by_role("link", name="Shared")).to_be_visible()
    assert at.button("New dashboard").count() == 0
    # Who is not logged in comes to the same page, with what is chosen there, after the login.
    asked = httpx.get(f"{server.url}/console/dashboards/shared?range=5m")
    assert asked.headers["location"] == "/login?next=/console/dashboards/shared%3Frange%3D5m"


def test_queries_and_streams_are_added(
    server: ServerAtWork, weather: None, visit: Visiting
) -> None:
    at = visit(scope="write", size=WINDOW)
    at.open("/console/queries/means")
    at.button("Add to dashboard").click()
    choose(at, "Dashboard", "A new dashboard")
    dialog(at).get_by_label("Title").fill("Added")
    at.button("Add it").click()
    at.page.wait_for_url("**/console/dashboards/added")
    assert {one["step"] for one in options(at, "means")["series"]} == {"end"}
    at.open("/console/streams/Weather")
    at.button("Add to dashboard").click()
    choose(at, "Dashboard", "Added")
    at.button("Add it").click()
    at.page.wait_for_url("**/console/dashboards/added")
    options(at, "Weather")
    at.open("/console/streams/Weather")
    expect(at.button("Add to dashboard")).to_be_visible()
