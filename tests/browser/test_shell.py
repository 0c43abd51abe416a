"""Who gets into the console, and how it is used by keyboard and in other colours."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import NARROW, WIDE, Visiting
from tests.browser.visit import Visit, enter
from tests.server_at_work import ServerAtWork

_LIVE = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"


def test_a_token_or_a_link_that_works_once_lets_in(server: ServerAtWork, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})
    at = Visit(server.url, context, context.new_page())
    at.page.goto(server.url + "/console/queries")
    assert at.page.url == server.url + "/login?next=/console/queries"
    at.photograph("login-light-1280")
    at.page.get_by_label("Access token").fill("nm_wrong")
    at.button("Log in").click()
    expect(at.page.get_by_role("alert")).to_have_text("This token is unknown, or has expired.")
    at.page.goto(server.url + "/login")
    at.page.get_by_label("Access token").fill(server.tokens["read"])
    at.button("Log in").click()
    expect(at.page.locator(".cm-content")).to_be_visible()
    cookie = next(one for one in context.cookies() if one["name"] == "nilometer_session")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    at.button("Log out").click()
    at.page.wait_for_url("**/login")
    at.page.goto(server.url + "/")
    assert at.page.url == server.url + "/login"
    session = {"name": "nilometer_session", "value": server.session_by_link, "url": server.url}
    context.add_cookies([session])  # type: ignore[list-item]
    at.page.goto(server.url + "/")
    expect(at.page.locator(".cm-content")).to_be_visible()
    at.page.goto(server.login_link)
    expect(at.page.get_by_role("alert")).to_contain_text("This link has already been used")
    context.close()
    allowed = "the server responded with a status of 403"  # the two refusals above
    assert [said for said in at.problems if allowed not in said] == []


def test_live_connections_need_a_session_and_the_same_origin(server: ServerAtWork) -> None:
    assert httpx.get(server.url + _LIVE).status_code == 403
    entered = httpx.post(server.url + "/login", data={"token": server.tokens["read"]})
    session = {"Cookie": entered.headers["set-cookie"].split(";")[0]}
    evil = {"Origin": "http://evil.example"}

    def live(**headers: str) -> int:
        return httpx.get(server.url + _LIVE, headers={**session, **headers}).status_code

    assert live() == 200
    assert live(Origin=server.url) == 200
    assert live(**evil) == 403
    httpx.post(server.url + "/logout", headers={**session, **evil})
    assert live() == 200  # another site cannot log anybody out
    httpx.post(server.url + "/logout", headers=session)
    assert live() == 403


def test_login_leads_to_pages_of_the_console_only(server: ServerAtWork) -> None:
    for wanted in ("//evil.example", "https://evil.example", "/console/\\evil.example", "/sql"):
        form = {"token": server.tokens["read"], "next": wanted}
        assert httpx.post(server.url + "/login", data=form).headers["location"] == "/"


def test_unknown_addresses_are_reported_as_the_api_reports_errors(server: ServerAtWork) -> None:
    assert httpx.get(server.url + "/nothing").json()["error"]["message"]
    assert httpx.get(server.url + "/nothing").status_code == 404
    assert httpx.delete(server.url + "/sql").status_code == 405


def test_scopes_decide_what_may_be_run(visit: Visiting) -> None:
    at = visit(scope="read")
    at.open("/")
    at.write("SELECT * FROM Weather")
    at.button("Run").click()
    expect(at.page.locator("#problem")).to_contain_text("this needs the scope write")


def test_everything_is_reached_by_keyboard(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    names = []
    for _ in range(20):
        at.page.keyboard.press("Tab")
        focused = at.page.evaluate(_FOCUSED)
        names.append(focused)
        if focused.startswith("SQL statement"):
            break
    assert names[0] == "Skip to content"
    for expected in ("Query", "Queries", "Sensors", "Log out", "Run", "Examples"):
        assert expected in names, names
    assert names[-1].startswith("SQL statement")
    at.page.keyboard.type("SELECT")
    at.page.keyboard.press("Escape")
    at.page.keyboard.press("Escape")
    at.page.keyboard.press("Tab")
    inside = "document.activeElement.closest('.cm-editor') !== null"
    assert at.page.evaluate(inside) is False


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_pages_fit_and_can_be_read(visit: Visiting, theme: str, size: tuple[int, int]) -> None:
    at = visit(size=size, theme=theme, guided=False)
    at.open("/")
    at.page.wait_for_selector(".nm-pick")
    too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert at.page.evaluate(too_wide) is False
    assert at.page.evaluate(_LEAST_CONTRAST) >= 4.5
    at.photograph(f"first-{theme}-{size[0]}")


def test_the_theme_is_chosen_and_kept(visit: Visiting) -> None:
    at = visit()
    at.open("/")
    dark = at.page.locator("body.body--dark")
    expect(dark).to_have_count(0)
    at.page.get_by_role("button", name="Theme: follows your system").click()
    at.page.get_by_role("button", name="Theme: light").click()
    expect(dark).to_have_count(1)
    at.open("/")
    expect(dark).to_have_count(1)
    expect(at.page.get_by_role("button", name="Theme: dark")).to_be_visible()


_FOCUSED = """() => {
  const one = document.activeElement;
  return (one.ariaLabel || one.innerText).split("\\n").at(-1);
}"""
_LEAST_CONTRAST = """() => {
  const rgba = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.9) return colour;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const element of document.querySelectorAll(".nm-header *, .nm-main *")) {
    const own = Array.from(element.childNodes).some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest(".disabled") || !element.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
}"""


def test_a_page_whose_token_is_revoked_gets_no_more_though_it_stays(
    server: ServerAtWork, browser: Browser
) -> None:
    made = httpx.post(
        server.url + "/tokens",
        headers=server.headers("admin"),
        json={"name": "brief", "scope": "read"},
    )
    server.sql("CREATE QUERY watched AS SELECT station, temperature FROM Weather")
    at = enter(browser, server.url, made.json()["token"], WIDE, "light")
    frames: list[str] = []
    at.page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda payload: frames.append(str(payload))),
    )
    at.open("/console/queries/watched")
    at.wait_for_rows()
    at.page.route("**/login**", lambda route: route.fulfill(status=204))  # it stays here

    def frames_within(within: int) -> int:
        """How many frames come in so many seconds, but for those that keep the connection."""
        frames.clear()
        at.page.wait_for_timeout(within * 1000)
        return len([one for one in frames if len(one) > 5])

    assert frames_within(4) > 0
    httpx.delete(server.url + "/tokens/brief", headers=server.headers("admin"))
    at.page.wait_for_timeout(10_000)  # tokens are looked at each second, sessions every five
    assert frames_within(4) == 0
    at.context.close()
    server.sql("DROP QUERY watched")
