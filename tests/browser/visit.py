"""A person at the console: a page in a browser that must not complain, and must not call others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect

from tests.patience import Patience

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
WAIT = 120_000
"""Milliseconds that a busy machine may need for anything that Spark does."""
expect.set_options(timeout=WAIT)
_LOOK_SECONDS = 60
_LOOK_MILLIS = 200
_CHART = """(chart) => (getElement(chart.id.slice(1)).chart.getOption()?.series ?? [])
    .map((one) => ({type: one.type, name: one.name, data: one.data}))"""


@dataclass
class Visit:
    """One page, logged in, and what went wrong in it."""

    url: str
    context: BrowserContext
    page: Page
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        host = urlsplit(self.url).netloc

        def look(request: Request) -> None:
            asked = urlsplit(request.url)
            if asked.scheme in ("http", "https", "ws", "wss") and asked.netloc != host:
                self.problems.append(f"asked another host: {request.url}")

        self.context.on("request", look)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on(
            "console",
            lambda said: (
                self.problems.append(f"{said.type}: {said.text}")
                if said.type in ("error", "warning")
                else None
            ),
        )

    def open(self, path: str) -> None:
        """Go to a page, and wait until it is alive."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector(".nm-main")
        self.page.wait_for_function("window.socket?.connected")

    def write(self, text: str) -> None:
        """Put a text into the editor, as somebody who types."""
        self.page.locator(".cm-content[aria-label^='SQL statement']").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def wait_for_rows(self) -> None:
        """Until the table has rows."""
        expect(self.page.locator(".nm-table tbody tr").first).to_be_attached()

    def rows_shown(self) -> int:
        """How many rows the query has made, as the page says."""
        text = self.page.locator(".nm-figures").inner_text()
        match = re.search(r"([\d ]+)\s+rows(?!/)", text)
        return int(re.sub(r"\D", "", match[1])) if match else 0

    def wait_for_more_rows(self) -> None:
        """Until the page tells of more rows than it does now."""
        before, patience = self.rows_shown(), Patience(_LOOK_SECONDS)
        while self.rows_shown() <= before:
            assert not patience.ended, f"no more rows than {before} came"
            self.page.wait_for_timeout(_LOOK_MILLIS)

    def chart(self) -> list[dict[str, Any]]:
        """The series that the chart shows now."""
        lines: list[dict[str, Any]] = self.page.locator(".nm-chart").evaluate(_CHART)
        return lines

    def newest_point(self) -> float:
        """The latest instant of any point of the chart; 0: there is none."""
        instants = [_instant(one) for series in self.chart() for one in series["data"] or ()]
        return max((one for one in instants if one is not None), default=0.0)

    def wait_for_points(self, after: float = 0.0) -> float:
        """Until the chart has a point later than this; that point's instant."""
        patience = Patience(_LOOK_SECONDS)
        while (newest := self.newest_point()) <= after:
            assert not patience.ended, f"the chart did not move: {self.chart()}"
            self.page.wait_for_timeout(_LOOK_MILLIS)
        return newest

    def wait_for_rest(self) -> None:
        """Until the chart has not moved for a second and a half."""
        patience, still = Patience(_LOOK_SECONDS), self.newest_point()
        while True:
            self.page.wait_for_timeout(1500)
            before, still = still, self.newest_point()
            if still == before:
                return
            assert not patience.ended, "the chart did not come to rest"

    def photograph(self, name: str, *, whole: bool = False) -> None:
        """A picture for a person to look at; of the whole page, or what is in sight."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.page.screenshot(path=path, animations="disabled", full_page=whole)


def enter(browser: Browser, url: str, token: str, size: tuple[int, int], theme: str) -> Visit:
    """Somebody who has logged in, with a browser of this size and theme."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
    )
    context.set_default_timeout(WAIT)
    context.request.post(f"{url}/login", form={"token": token}, max_redirects=0)
    return Visit(url, context, context.new_page())


def _instant(point: Any) -> float | None:
    if isinstance(point, dict):
        return max(float(time) for time, _ in point["coords"]) if "coords" in point else None
    return float(point[0]) if point and isinstance(point[0], int | float) else None
