"""Forms in a real browser: what is shown is what is run, and who may not is not asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import NARROW, Visiting
from tests.browser.visit import Visit
from tests.server_at_work import ServerAtWork


class _Warm(BaseHTTPRequestHandler):
    """A sensor."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"temperature": 21.123456789}).encode())

    def log_request(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def sensor() -> Iterator[str]:
    """The address of a sensor that answers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Warm) as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/"
        made.shutdown()


def _dialog(at: Visit) -> Locator:
    return at.page.get_by_role("dialog")


def _shown(at: Visit) -> str:
    return _dialog(at).locator("pre.nm-sql").inner_text()


def _names(server: ServerAtWork, statement: str) -> list[Any]:
    return [one["name"] for one in server.sql(statement)["rows"]]


def test_a_stream_is_tried_and_then_created(
    server: ServerAtWork, visit: Visiting, sensor: str
) -> None:
    at = visit()
    at.open("/console/sensors")
    at.button("Add a stream").click()
    expect(at.button("Create it")).to_be_disabled()
    dialog = _dialog(at)
    dialog.get_by_label("Name", exact=True).fill("Oven")
    dialog.get_by_label("Address", exact=True).fill("http://127.0.0.1:9/")
    expect(dialog.locator("pre.nm-sql")).to_contain_text("CREATE STREAM Oven")
    at.button("Try a reading").click()
    expect(dialog.get_by_role("alert").first).to_contain_text("Connect")
    dialog.get_by_label("Address", exact=True).fill(sensor)
    expect(dialog.locator("pre.nm-sql")).to_contain_text(sensor)
    at.button("Try a reading").click()
    expect(dialog.locator(".nm-extra .nm-sheet")).to_contain_text("21.1235")
    at.photograph("form-stream-light-1280")
    assert "Oven" not in _names(server, "SHOW STREAMS")
    at.button("Create it").click()
    expect(at.page.get_by_text("created stream Oven")).to_be_visible()
    expect(at.page.locator("a.item.box", has_text="Oven").first).to_be_visible()
    server.sql("DROP STREAM Oven")


def test_sensors_are_added_to_a_table_on_a_phone(
    server: ServerAtWork, visit: Visiting, sensor: str
) -> None:
    server.sql(
        "CREATE SENSOR TABLE Kilns (place STRING, Reading STREAM(temperature DOUBLE) FROM http)"
    )
    at = visit(size=NARROW, theme="dark")
    at.open("/console/streams/Kilns")
    at.button("Add sensors").click()
    _dialog(at).get_by_label("One sensor on each line").fill(f"east, {sensor}\nwest, {sensor}")
    expect(_dialog(at).locator("pre.nm-sql")).to_contain_text("'west'")
    at.button("Try a reading").click()
    expect(_dialog(at).locator(".nm-extra .nm-sheet")).to_contain_text("21.1235")
    at.photograph("form-sensors-dark-390")
    at.button("Add them").click()
    expect(at.page.locator(".nm-sheet", has_text="east")).to_be_visible()
    assert len(server.sql("SHOW SENSORS FROM Kilns")["rows"]) == 2
    server.sql("DROP SENSOR TABLE Kilns")


def test_limits_are_changed_by_the_statement_that_is_shown(
    server: ServerAtWork, visit: Visiting
) -> None:
    server.sql("CREATE QUERY bounded AS SELECT station, wind FROM Weather")
    at = visit(scope="write")
    at.open("/console/queries/bounded")
    at.button("Limits bounded").click()
    _dialog(at).get_by_label("Results on disk, at most").fill("many")
    at.button("Change them").click()
    expect(_dialog(at).get_by_role("alert")).to_contain_text("results")
    _dialog(at).get_by_label("Results on disk, at most").fill("2 GB")
    expect(_dialog(at).locator("pre.nm-sql")).to_have_text(
        "ALTER QUERY bounded SET (results = '2 GB')"
    )
    at.button("Change them").click()
    expect(at.page.get_by_text("query bounded altered")).to_be_visible()
    status = httpx.get(f"{server.url}/queries/bounded", headers=server.headers()).json()
    assert status["limits"]["results"] == 2 << 30
    server.sql("DROP QUERY bounded")


def test_a_delivery_is_created_paused_started_and_deleted(
    server: ServerAtWork, visit: Visiting
) -> None:
    server.sql("CREATE QUERY exported AS SELECT station, wind FROM Weather")
    at = visit()
    at.open("/console/deliveries")
    expect(at.page.get_by_text("No results are delivered yet.")).to_be_visible()
    at.button("New delivery").click()
    dialog = _dialog(at)
    dialog.get_by_label("Name", exact=True).fill("archive")
    dialog.get_by_label("Results of").click()
    at.page.get_by_role("option", name="exported").click()
    dialog.get_by_label("To", exact=True).click()
    at.page.get_by_role("option", name="parquet").click()
    expect(dialog.get_by_label("Secret")).to_be_hidden()
    dialog.get_by_label("Folder").fill("hot")
    expect(dialog.locator("pre.nm-sql")).to_contain_text("TO parquet WITH (folder = 'hot')")
    shown = _shown(at)
    at.photograph("form-delivery-light-1280")
    at.button("Create it").click()
    card = at.page.locator(".nm-query", has_text="archive")
    expect(card.locator(".nm-state")).to_have_text("running")
    assert "FROM exported" in shown
    at.button("Pause archive").click()
    expect(card.locator(".nm-state")).to_have_text("stopped")
    at.button("Start archive").click()
    expect(card.locator(".nm-state")).to_have_text("running")
    at.photograph("deliveries-light-1280")
    at.button("Delete archive").click()
    expect(_dialog(at).locator("pre.nm-sql")).to_have_text("DROP DELIVERY archive")
    at.button("Delete it").click()
    expect(card).to_have_count(0)
    assert server.sql("SHOW DELIVERIES")["rows"] == []
    server.sql("DROP QUERY exported")


def test_a_token_is_made_seen_once_and_revoked(server: ServerAtWork, visit: Visiting) -> None:
    at = visit()
    at.open("/console/tokens")
    at.button("New token").click()
    _dialog(at).get_by_label("Name", exact=True).fill("wall panel")
    expect(_dialog(at)).to_contain_text("nilometer tokens create 'wall panel' --scope read")
    at.button("Create it").click()
    secret = at.page.locator(".nm-secret")
    expect(secret).to_contain_text("nm_")
    given = {"Authorization": f"Bearer {secret.inner_text()}"}
    at.photograph("token-light-1280")
    at.button("I have it").click()
    expect(secret).to_have_count(0)
    assert httpx.get(f"{server.url}/queries", headers=given).status_code == 200
    assert httpx.get(f"{server.url}/tokens", headers=given).status_code == 403
    card = at.page.locator(".nm-query", has_text="wall panel")
    expect(card).to_contain_text("expires 20")
    at.button("Revoke wall panel").click()
    at.button("Revoke it").click()
    expect(card).to_have_count(0)
    assert httpx.get(f"{server.url}/queries", headers=given).status_code == 401


def test_what_may_not_be_done_is_not_offered(server: ServerAtWork, visit: Visiting) -> None:
    at = visit(scope="write")
    at.open("/console/sensors")
    expect(at.page.locator(".nm-svg").first).to_be_visible()
    assert at.page.get_by_role("link", name="Tokens").count() == 0
    assert at.button("Add a stream").count() == 0
    at.open("/console/deliveries")
    assert at.button("New delivery").count() == 0
    at.open("/console/tokens")
    expect(at.page.get_by_text("Tokens are for administrators.")).to_be_visible()
    body = {"statement": "CREATE STREAM S (v INT) FROM http WITH (address = 'http://127.0.0.1:9/')"}
    for scope, status in (("read", 403), ("write", 403)):
        asked = httpx.post(f"{server.url}/sensors/try", json=body, headers=server.headers(scope))
        assert asked.status_code == status
    body = {"stream": "Weather"}
    asked = httpx.post(
        f"{server.url}/sensors/try", json=body, headers=server.headers("write"), timeout=60
    )
    assert len(asked.json()["readings"]) == 5
    refused = httpx.post(f"{server.url}/sensors/try", json=body, headers=server.headers("read"))
    assert refused.status_code == 403
