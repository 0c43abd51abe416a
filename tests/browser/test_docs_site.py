"""The documentation as a site: links lead somewhere, and it needs neither server nor network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does: a link that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    build = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, *build],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_words_are_searched_in_files(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    words, first = page.locator(".md-search__input"), page.locator(".md-search-result__link").first
    for _ in range(20):  # what is typed before the page listens is not searched
        words.click()
        words.fill("")
        words.press_sequentially("lateness")
        page.wait_for_timeout(500)
        if first.count():
            break
    expect(first).to_be_visible()
    first.click()
    expect(page.locator("article")).to_contain_text("lateness", ignore_case=True)
    page.close()
    assert [url for url in asked if not url.startswith("file:")] == []


def test_pages_are_whole(site: Path) -> None:
    decisions = (site / "decisions" / "index.html").read_text()
    there = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert all(f"{one.stem}.html" in decisions for one in there)
    algorithms = (site / "algorithms.html").read_text()
    assert "files/papers/src/nilometer_papers/algorithms/nlw_join.py.txt" in algorithms
    assert "<code>|t_B - t_A| &lt;= 5 s</code>" in (site / "sql.html").read_text()
    assert (site / "experiments.html").read_text().count("<li>judged by") > 50
