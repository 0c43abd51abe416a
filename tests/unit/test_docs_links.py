"""What README and docs link to is there: files, and headings in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")]
PAGES = [*TOP, *sorted(ROOT.glob("docs/**/*.md"))]


def anchors(page: Path) -> set[str]:
    """As they are made of headings: lower case, no punctuation, hyphens for blanks."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    """Those to other places of this repository, outside of examples."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [one for one in targets if not re.match(r"[a-z]+:", one)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        file, _, heading = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def test_the_map_of_the_code_names_files_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text):
        folders = (".", "src/nilometer", "src/nilometer/server", "papers/src/nilometer_papers")
        assert any((ROOT / folder / path).exists() for folder in folders), path


def test_the_ways_through_the_code_go_down_its_folders() -> None:
    """Each list of steps, of which a way has at most 15 in all."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    height = {name: place for place, row in enumerate(rows) for name in re.findall("`(.*?)`", row)}
    ways = re.findall(r"^## The way of .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert len(ways) == 3
    for way in ways:
        assert len(re.findall(r"^\d+\. ", way, re.MULTILINE)) <= 15
        for steps in re.findall(r"(?:^\d+\. .*\n(?: +\S.*\n)*)+", way, re.MULTILINE):
            files = re.findall(r"^\d+\. .*?`([a-z_/]+\.py)`", steps, re.MULTILINE)
            heights = [
                height[max((one for one in height if file.startswith(one)), key=len)]
                for file in files
            ]
            assert heights == sorted(heights), files
