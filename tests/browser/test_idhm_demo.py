"""`nilometer demo idhm` as somebody sees it who opens its link: the belt runs, boxes are judged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import WIDE
from tests.browser.visit import WAIT, Visit
from tests.patience import LONG, wait_for


@contextmanager
def demo_at_work(folder: Path) -> Iterator[str]:
    """The link that the demo prints; it is ended as by Ctrl-C."""
    output = folder / "demo.out"
    command = [sys.executable, "-m", "nilometer", "demo", "idhm", "--seconds", "600"]
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield _link(process, output)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(LONG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def _link(process: subprocess.Popen[bytes], output: Path) -> str:
    match: re.Match[str] = wait_for(
        lambda: re.search(r"http://\S+/login\?code=\S+", output.read_text()),
        said=lambda: f"the demo told no link:\n{output.read_text()}",
        alive=lambda: process.poll() is None,
    )
    return match[0]


@pytest.mark.soak
@pytest.mark.limit(600)
def test_the_belt_is_seen_and_boxes_are_judged(browser: Browser, tmp_path: Path) -> None:
    with demo_at_work(tmp_path) as link:
        context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})
        address = urlsplit(link)
        at = Visit(f"{address.scheme}://{address.netloc}", context, context.new_page())
        at.page.goto(link)
        assert urlsplit(at.page.url).path == "/console/idhm"
        expect(at.page.locator(".parcel").first).to_be_visible(timeout=WAIT)
        expect(at.page.locator(".spectrum .counted").first).to_be_visible(timeout=WAIT)
        verdict = at.page.locator(".idhm-verdict .nm-state").first
        expect(verdict).to_have_text(re.compile("safe|suspect|more data needed"), timeout=WAIT)
        at.photograph("idhm-demo-light-1280", whole=True)
        decided = at.page.locator(".nm-sheet tbody tr").first
        expect(decided).to_have_text(re.compile("safe|suspect"), timeout=WAIT)
        expect(at.page.locator(".parcel.good, .parcel.bad").first).to_be_visible()
        expect(at.page.locator(".matched").first).to_be_visible(timeout=WAIT)
        at.photograph("idhm-demo-decided-light-1280", whole=True)
        context.close()
        assert at.problems == []
