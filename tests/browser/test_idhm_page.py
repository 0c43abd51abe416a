"""The page of the hazardous-material application in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import NARROW, WIDE
from tests.browser.visit import Visit, enter
from tests.console_at_work import ConsoleAtWork, console_at_work
from tests.idhm_results import FERTILIZER, WrittenBelt, harmless, written_belt

_PAGE = "nilometer_papers.idhm.page:PAGE"
_EVIL = "<img src=x onerror=bad>"
_EXPLOSIVE = {
    "class": "explosive",
    "material": "ammonium nitrate",
    "confidence": 0.93,
    "lines": "N 5.11, O 6.13",
}
_FOUND = ((2.31, "N 2.31"), (5.11, "N 5.11"), (6.13, "O 6.13"), (8.2, None), (10.83, "N 10.83"))


@pytest.fixture
def console(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleAtWork]:
    """A console over results that nobody has written yet."""
    with console_at_work(tmp_path_factory.mktemp("idhm"), _PAGE) as running:
        yield running


def look(browser: Browser, console: ConsoleAtWork, size: tuple[int, int], theme: str) -> Visit:
    at = enter(browser, console.url, console.tokens["read"], size, theme)
    at.open("/console/idhm")
    return at


def end(at: Visit) -> None:
    at.context.close()
    assert at.problems == []


def test_a_day_at_the_belt(browser: Browser, console: ConsoleAtWork) -> None:
    assert httpx.get(f"{console.url}/console/idhm").headers["location"].startswith("/login")
    at = look(browser, console, WIDE, "light")
    place = at.page.get_by_role("navigation", name="Main", exact=True)
    expect(place.get_by_role("link", name="IDHM")).to_have_attribute("aria-current", "page")
    expect(at.page.get_by_text("Waiting for the first burst")).to_be_visible()
    with written_belt(console) as belt:
        see_the_first_box_cleared(at, belt)
        see_a_suspect_box_diverted(at, belt)
        see_the_decisions(at)
        see_a_box_again(at, belt)
        end(at)
        for theme in ("light", "dark"):
            for size in (WIDE, NARROW):
                see_it_all_at_once(look(browser, console, size, theme), f"{theme}-{size[0]}")


def see_the_first_box_cleared(at: Visit, belt: WrittenBelt) -> None:
    page = at.page
    for number in (1, 2, 3, 4):
        belt.move(number, "exposed" if number == 1 else "waiting")
    expect(page.locator(".parcel")).to_have_count(4)
    belt.burst(harmless(1), 1)
    expect(page.locator(".idhm-detector")).to_have_count(2)
    counted = page.locator(".spectrum .counted")
    expect(counted).to_have_count(2)
    assert 300 <= len((counted.first.get_attribute("points") or "").split()) <= 500
    expect(page.get_by_text("Waiting for the first burst")).to_be_hidden()
    expect(page.get_by_text("No verdict on this box yet.").first).to_be_visible()

    belt.burst(harmless(1), 2, verdict="more data", confidence=0.6, **{"class": "none"})
    verdict = page.get_by_role("region", name="Detector north").locator(".idhm-verdict")
    expect(verdict).to_contain_text("more data needed")
    expect(verdict).to_contain_text("60 % sure")
    belt.decide(1, 2.0, "safe", confidence=0.97, **{"class": "none"})
    belt.move(1, "cleared")
    last = page.locator(".idhm-said")
    expect(last).to_have_text("Box 1 is safe: nothing hazardous, 97 % sure, after 2.0 s")
    label = re.compile("^Box 1: safe")
    expect(page.locator(".parcel.good")).to_have_attribute("aria-label", label)


def see_a_suspect_box_diverted(at: Visit, belt: WrittenBelt) -> None:
    page = at.page
    for number in (2, 3, 4, 5, 6):
        belt.move(number, "exposed")
        belt.decide(number, 3.0, "safe", confidence=0.9, **{"class": "none"})
        belt.move(number, "cleared")
        belt.move(number + 3, "waiting")
    belt.move(7, "exposed")
    belt.burst(FERTILIZER, 4, verdict="suspect", **_EXPLOSIVE)
    for name in ("north", "south"):
        for energy, line in _FOUND:
            belt.peak(name, 7, 4, energy, line)
    south = page.get_by_role("region", name="Detector south")
    expect(south.locator(".matched text")).to_have_text(["N 2.31", "N 5.11", "O 6.13", "N 10.83"])
    expect(south.locator(".unmatched")).to_have_count(1)
    south.locator(".matched").first.focus()
    note = "N 2.31: peak at 2.31 MeV, 1 234 counts, 8.5 sigma"
    expect(south.locator(".nm-note")).to_have_text(note)

    belt.decide(7, 4.0, "suspect", **_EXPLOSIVE)
    said = "Box 7 is suspect: explosive, like ammonium nitrate, 93 % sure, after 4.0 s"
    expect(page.locator(".idhm-said")).to_have_text(said)
    at.photograph("idhm-suspect-light-1280", whole=True)
    belt.move(7, "diverted")
    belt.move(8, "exposed")
    suspect = page.locator(".parcel.bad")
    expect(suspect).to_contain_text("suspect")
    expect(suspect).to_contain_text("explosive")
    expect(page.locator(".parcel.busy")).to_contain_text("8")


def see_the_decisions(at: Visit) -> None:
    figures = at.page.locator(".idhm-bar .nm-figures")
    expect(figures).to_have_text("7decided6safe1suspect3.0 smean time to decision")
    rows = at.page.locator(".nm-sheet tbody tr")
    expect(rows).to_have_count(7)
    expect(rows.first).to_contain_text("N 5.11, O 6.13")
    counted = at.page.locator(".spectrum .counted").first
    before = counted.get_attribute("points") or ""
    at.button("Logarithm").click()
    expect(counted).not_to_have_attribute("points", before)


def see_a_box_again(at: Visit, belt: WrittenBelt) -> None:
    """What is stored of a box is shown burst by burst, whatever happens at the belt meanwhile."""
    page = at.page
    page.get_by_label("Show a box again").click()
    page.get_by_role("option", name="1", exact=True).click()
    notice = page.locator(".idhm-replay")
    expect(notice).to_contain_text("Box 1 once more: burst 2 of 2.")
    north = page.get_by_role("region", name="Detector north")
    expect(north.locator("svg.spectrum")).to_have_attribute("aria-label", re.compile("of box 1:"))
    expect(north.locator(".idhm-verdict")).to_contain_text("more data needed")
    belt.burst(harmless(8), 1)
    at.photograph("idhm-replay-light-1280", whole=True)
    expect(north.locator("svg.spectrum")).to_have_attribute("aria-label", re.compile("of box 1:"))
    at.button("Back to the belt").click()
    expect(notice).to_be_hidden()
    expect(north.locator("svg.spectrum")).to_have_attribute("aria-label", re.compile("of box 8:"))


def see_it_all_at_once(at: Visit, name: str) -> None:
    """Whoever comes later sees where things stand."""
    expect(at.page.locator(".parcel.bad")).to_be_visible()
    expect(at.page.locator(".nm-sheet tbody tr")).to_have_count(7)
    expect(at.page.locator(".spectrum .counted")).to_have_count(2)
    too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert at.page.evaluate(too_wide) is False
    at.photograph(f"idhm-{name}", whole=True)
    end(at)


def test_names_that_try_to_be_more_than_text(browser: Browser, console: ConsoleAtWork) -> None:
    at = look(browser, console, WIDE, "dark")
    with written_belt(console) as belt:
        said = {"class": _EVIL, "confidence": 0.5, "lines": _EVIL}
        belt.burst(harmless(1), 1, {_EVIL: "NaI"}, verdict="suspect", **said)
        belt.peak(_EVIL, 1, 1, 5.11, _EVIL)
        belt.decide(1, 1.0, "suspect", **said)
        expect(at.page.locator(".idhm-detector")).to_contain_text(f"Detector {_EVIL}")
        expect(at.page.locator(".idhm-said")).to_contain_text(_EVIL)
        expect(at.page.locator(".idhm-verdict b")).to_have_text(_EVIL)
        expect(at.page.locator(".nm-sheet tbody tr")).to_contain_text(_EVIL)
        assert at.page.locator("img[src=x]").count() == 0
    end(at)
