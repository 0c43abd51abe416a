"""Names, values and errors that try to be more than text, on every page of the console."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

import httpx
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visiting
from tests.server_at_work import ServerAtWork

NAME = """<img src=x onerror=hacked=1>{{hacked=2}}"'(+"""
VALUE = """<img src=x onerror=hacked=3>{{hacked=4}}" onclick="hacked=5" [x](javascript:hacked=6)"""
_MARKUP = """() => [
    window.hacked ?? 0,
    document.querySelectorAll('img[src="x"]').length,
    document.querySelectorAll('[onclick*="hacked"], [onerror], a[href^="javascript"]').length,
]"""


def harmless(page: Page) -> None:
    """Nothing of it was run, or became an element."""
    assert page.evaluate(_MARKUP) == [0, 0, 0]


@contextmanager
def speaking() -> Iterator[int]:
    """The port of a sensor that says what it likes."""
    over = threading.Event()
    row = json.dumps({"v": 1.5, "t": VALUE})

    def speak(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while not over.wait(0.3):
                connection.sendall(f"{row}\n{VALUE}\n".encode())

    def listen() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=speak, args=(bound.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as bound:
        threading.Thread(target=listen, daemon=True).start()
        try:
            yield bound.getsockname()[1]
        finally:
            over.set()


def test_text_stays_text(server: ServerAtWork, visit: Visiting) -> None:
    with speaking() as port:
        server.sql(
            f"CREATE STREAM `{NAME}` (v DOUBLE, t STRING) FROM tcp"
            f" WITH (address = 'tcp://127.0.0.1:{port}', format = 'json')"
        )
        server.sql(f"CREATE QUERY `q{NAME}` AS SELECT v, t AS `c{NAME}` FROM `{NAME}`")
        server.sql(f"CREATE DELIVERY `d{NAME}` FROM `q{NAME}` TO parquet")
        panel = {"title": VALUE, "y": ["v"], "series": "t", "stream": NAME}
        panels = [{**panel, "kind": one} for one in ("line", "stat", "heat map", "table")]
        panels.append(
            {"title": VALUE, "kind": "table", "select": f"SELECT `{VALUE}` FROM `{NAME}`"}
        )
        answer = httpx.put(
            f"{server.url}/dashboards/hostile",
            json={"title": VALUE, "panels": panels},
            headers=server.headers("write"),
        )
        assert answer.status_code == 200, answer.text
        try:
            _look_everywhere(visit)
        finally:
            httpx.delete(f"{server.url}/dashboards/hostile", headers=server.headers("write"))
            server.sql(f"DROP DELIVERY `d{NAME}`")
            server.sql(f"DROP QUERY `q{NAME}`")
            server.sql(f"DROP STREAM `{NAME}`")


def _look_everywhere(visit: Visiting) -> None:
    at = visit()
    at.open("/console/queries/" + quote(f"q{NAME}", safe=""))
    at.wait_for_rows()
    expect(at.page.locator(".nm-table tbody td").filter(has_text=VALUE[:28]).first).to_be_visible()
    harmless(at.page)
    at.open("/console/queries")
    expect(at.page.get_by_text(f"q{NAME}").first).to_be_visible()
    harmless(at.page)
    at.open("/console/sensors")
    expect(at.page.get_by_text(NAME).first).to_be_attached()
    at.page.get_by_role("button").filter(has_text="Dead letters").first.click()
    expect(at.page.get_by_role("dialog").get_by_text(VALUE[:28]).first).to_be_visible()
    harmless(at.page)
    at.open("/console/dashboards/hostile")
    expect(at.page.locator(".nm-tile").first).to_be_visible()
    expect(at.page.locator(".nm-panel-chart:visible")).to_have_count(2)
    expect(at.page.locator(".nm-pane").get_by_role("alert")).to_contain_text(VALUE[:28])
    harmless(at.page)
    at.open("/console/dashboards")
    expect(at.page.get_by_role("link", name=VALUE[:28])).to_be_visible()
    harmless(at.page)
    at.open("/")
    at.write(f"SELECT `{VALUE}` FROM `{NAME}`")
    expect(at.page.get_by_text(f"there is no column {VALUE[:28]}").first).to_be_visible()
    harmless(at.page)
    at.write("SELECT v FROM ")
    at.page.keyboard.press("Control+Space")
    expect(at.page.locator(".cm-tooltip-autocomplete").get_by_text(NAME).first).to_be_visible()
    harmless(at.page)
    at.open("/console/queries/" + quote(VALUE.replace("/", ""), safe=""))
    harmless(at.page)


def test_pages_cannot_be_framed_nor_lead_away(server: ServerAtWork) -> None:
    with httpx.Client(base_url=server.url) as client:
        for wanted in ("//evil.example", "https://evil.example", "/\\evil.example", "/x"):
            form = {"token": server.tokens["read"], "next": wanted}
            answer = client.post("/login", data=form)
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
        for path in ("/", "/console/queries", "/login", "/docs"):
            headers = client.get(path).headers
            assert headers["x-frame-options"] == "DENY"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "form-action 'self'" in headers["content-security-policy"]


def test_a_session_is_made_anew_and_ends(server: ServerAtWork) -> None:
    with httpx.Client(base_url=server.url) as client:
        client.cookies.set("nilometer_session", "chosen-by-somebody-else")
        answer = client.post("/login", data={"token": server.tokens["read"]})
        made = answer.cookies["nilometer_session"]
        assert made != "chosen-by-somebody-else"
        own = {"Cookie": f"nilometer_session={made}"}
        assert httpx.get(server.url, headers=own).status_code == 200
        for origin in ("http://evil.example", "null", "http://["):
            httpx.post(f"{server.url}/logout", headers=own | {"Origin": origin})
            assert httpx.get(server.url, headers=own).status_code == 200
            headers = {"Origin": origin}
            refused = httpx.post(
                f"{server.url}/login", headers=headers, data=answer.request.headers
            )
            assert refused.status_code == 403
        httpx.post(f"{server.url}/logout", headers=own | {"Origin": server.url})
        assert httpx.get(server.url, headers=own).status_code == 303
