"""Alerts and downloads in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import NARROW, Visiting
from tests.browser.visit import Visit
from tests.server_at_work import ServerAtWork

DESK = (1400, 900)


def _card(at: Visit, name: str) -> Locator:
    return at.page.locator("li.nm-query", has=at.page.get_by_role("heading", name=name))


def test_an_alert_is_made_fires_and_is_silenced(server: ServerAtWork, visit: Visiting) -> None:
    at = visit(size=DESK)
    at.open("/console/alerts")
    expect(at.page.get_by_text("Nothing is watched yet.")).to_be_visible()
    at.button("New alert").click()
    dialog = at.page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("warm")
    dialog.get_by_label("On", exact=True).click()
    at.page.get_by_role("option", name="Weather", exact=True).click()
    expect(dialog).to_contain_text("Columns: station, temperature, wind")
    dialog.get_by_label("Fires when").fill("temperature > 5")
    dialog.get_by_label("Clears when").fill("temperature < 0")
    dialog.get_by_label("For each (may be empty)").click()
    at.page.get_by_role("option", name="station", exact=True).click()
    at.page.keyboard.press("Escape")
    expect(dialog.locator("pre.nm-sql")).to_contain_text("PER (station)")
    at.photograph("form-alert-light-1400")
    at.button("Create it").click()
    card = _card(at, "warm")
    expect(card.locator("tbody tr")).to_have_count(3)
    expect(card.locator(".nm-state.bad", has_text="firing").first).to_be_visible()
    server.sql("CREATE ALERT cold ON Weather WHEN temperature < -50 NO DATA FOR '1 minute'")
    expect(_card(at, "cold").locator(".nm-state.good")).to_have_text("ok")
    at.button("History warm").click()
    expect(card.locator(".nm-alert-history tbody tr")).to_have_count(3)
    at.photograph("alerts-light-1400", whole=True)
    at.button("Silence warm").click()
    expect(at.page.get_by_role("dialog").locator("pre.nm-sql")).to_have_text(
        "ALTER ALERT warm SET (silence = '1 hour')"
    )
    at.button("Silence it").click()
    expect(card).to_contain_text("silenced until")
    at.button("End silence warm").click()
    expect(card).not_to_contain_text("silenced until")
    on_a_phone = visit(size=NARROW, theme="dark")
    on_a_phone.open("/console/alerts")
    expect(_card(on_a_phone, "warm")).to_be_visible()
    wide = on_a_phone.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= NARROW[0]
    on_a_phone.photograph("alerts-dark-390", whole=True)
    on_a_tablet = visit(size=(900, 1100))
    on_a_tablet.open("/console/alerts")
    expect(_card(on_a_tablet, "warm")).to_be_visible()
    expect(on_a_tablet.page.get_by_role("button", name="Log out")).to_be_in_viewport()
    assert on_a_tablet.page.evaluate("document.documentElement.scrollWidth") <= 900
    on_a_tablet.photograph("alerts-light-900")
    at.button("Delete warm").click()
    at.button("Delete it").click()
    expect(_card(at, "warm")).to_have_count(0)
    server.sql("DROP ALERT cold")


def test_who_may_only_read_is_offered_nothing(server: ServerAtWork, visit: Visiting) -> None:
    server.sql("CREATE ALERT warm ON Weather WHEN temperature > 5")
    at = visit(scope="read", theme="dark", size=DESK)
    at.open("/console/alerts")
    expect(_card(at, "warm")).to_contain_text("fires when temperature > 5")
    for name in ("New alert", "Silence warm", "Delete warm"):
        expect(at.button(name)).to_have_count(0)
    at.photograph("alerts-read-dark-1400")
    server.sql("DROP ALERT warm")


@pytest.mark.parametrize(("size", "theme"), [(DESK, "light"), (NARROW, "dark")])
def test_a_stream_is_downloaded(
    server: ServerAtWork,
    visit: Visiting,
    tmp_path: Path,
    size: tuple[int, int],
    theme: str,
) -> None:
    server.sql("CREATE ALERT needs ON Weather WHEN false")  # sensors are read for somebody
    at = visit(scope="read", size=size, theme=theme)
    at.open("/console/streams/Weather")
    expect(at.page.locator(".nm-figures")).to_contain_text(re.compile(r"[1-9]\d* ?rows"))
    expect(at.page.get_by_role("link", name="alert needs")).to_be_visible()
    at.button("Download").click()
    dialog = at.page.get_by_role("dialog")
    dialog.get_by_label("From (UTC)").fill("yesterday")
    at.button("Download it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("yesterday")
    dialog.get_by_label("From (UTC)").fill("2020-01-01")
    dialog.get_by_label("Rows", exact=True).click()
    at.page.get_by_role("option", name="minimum, maximum").click()
    dialog.get_by_label("Columns (empty: all)").click()
    at.page.get_by_role("option", name="wind", exact=True).click()
    at.page.keyboard.press("Escape")
    at.photograph(f"download-{theme}-{size[0]}")
    with at.page.expect_download() as coming:
        at.button("Download it").click()
    file = tmp_path / "file"
    coming.value.save_as(file)
    assert coming.value.suggested_filename == "Weather.csv"
    header, first, *_ = file.read_text().splitlines()
    assert header.endswith('"wind_min","wind_max","wind_mean","rows"')
    assert first.count(",") == header.count(",")
    server.sql("DROP ALERT needs")
