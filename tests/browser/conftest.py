"""One real server and one real browser for all tests of the console."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visit import Visit, enter
from tests.server_at_work import ServerAtWork, server_at_work

_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WIDE = (1280, 860)
NARROW = (390, 844)
_CAMERAS = """CREATE STREAM Camera{n} (ts TIMESTAMP, obj_id INT, speed DOUBLE, TIME ts)
FROM synthetic WITH (rate = 6, values = 'obj_id=uniform(1,12), speed=normal({n}0,2)')"""
_WEATHER = """CREATE STREAM Weather (station STRING, temperature DOUBLE, wind DOUBLE)
FROM synthetic WITH (rate = 20,
  values = 'station=choice(harbour,hill,roof), temperature=normal(18,1.5), wind=walk(12,0.3)')"""


@pytest.fixture(scope="session")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAtWork]:
    """A server with three cameras and a weather station; none where no browser could look."""
    with server_at_work(tmp_path_factory.mktemp("console")) as running:
        running.follow_login_link()  # it works for five minutes, and tests may take longer
        running.sql(_WEATHER)
        for number in (1, 2, 3):
            running.sql(_CAMERAS.format(n=number))
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: one of {', '.join(_BROWSERS)} is needed")
    try:
        ctypes.CDLL("libatomic.so.1")
    except OSError:
        pytest.skip("Playwright needs libatomic.so.1: apt-get install libatomic1")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


Visiting = Callable[..., Visit]


@pytest.fixture
def visit(server: ServerAtWork, browser: Browser) -> Iterator[Visiting]:
    """Logs somebody in: `visit(scope="admin", size=WIDE, theme="light", guided=True)`.

    A test fails if one of its pages complained, or called another host.
    """
    visits: list[Visit] = []

    def begin(
        scope: str = "admin",
        size: tuple[int, int] = WIDE,
        theme: str = "light",
        *,
        guided: bool = True,
    ) -> Visit:
        made = enter(browser, server.url, server.tokens[scope], size, theme)
        if guided:
            cookie = {"name": "nilometer_guided", "value": "yes", "url": server.url}
            made.context.add_cookies([cookie])  # type: ignore[list-item]
        visits.append(made)
        return made

    yield begin
    for one in visits:
        one.context.close()
    assert [said for one in visits for said in one.problems] == []
