"""Pages that applications add to the console: who may add what, and what they read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from nilometer.errors import InputError, LimitError, NilometerError
from nilometer.server.config import read_config
from nilometer.server.console.page_results import PageResults
from nilometer.server.console.pages import ENTRY_POINTS, ConsolePage, all_pages
from nilometer.server.service import Service
from tests.installed_package import install
from tests.patience import LONG
from tests.results_server import StoredQueries, numbered

_CODE = """
from nilometer.server.console.pages import ConsolePage
BELT = ConsolePage("Belt", "belt", "luggage", print)
QUERIES = ConsolePage("Others", "queries", "list", print)
SAME_TITLE = ConsolePage("Belt", "belt-2", "luggage", print)
"""


def page(title: str, name: str) -> ConsolePage:
    return ConsolePage(title, name, "luggage", lambda results: None)


@pytest.mark.parametrize("name", ["", "Belt", "a/b", "../x", "a b", "2belts", 'x"onload', "bält"])
def test_names_that_cannot_stand_in_an_address(name: str) -> None:
    with pytest.raises(InputError, match="is part of its URL"):
        page("Belt", name)


def test_the_example_of_the_documentation_is_a_page() -> None:
    text = Path(__file__).parents[2].joinpath("docs", "server.md").read_text()
    [example] = re.findall(r"```python\n(from nicegui .*?)```", text, re.DOTALL)
    made: dict[str, object] = {}
    exec(example, made)
    assert isinstance(made["PAGE"], ConsolePage)


def test_pages_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "\n".join(
        f"{name.lower()} = belts:{name}" for name in ("BELT", "QUERIES", "SAME_TITLE", "__doc__")
    )
    install(tmp_path, "belts", ENTRY_POINTS, entries, _CODE)
    install(tmp_path, "broken_belt", ENTRY_POINTS, "broken = broken_belt:X", "1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    said: list[NilometerError] = []
    pages = all_pages([page("Yard", "yard")], said.append)
    assert [one.address for one in pages] == ["/console/yard", "/console/belt"]
    assert sorted(one.message for one in said) == [
        "belts:__doc__ is not a page of the console",
        "page of the console broken cannot be loaded",
        "the console has a page Belt at /console/belt-2 already",
        "the console has a page Others at /console/queries already",
    ]


def test_a_page_may_be_installed_and_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "belts_too", ENTRY_POINTS, "belt = belts_too:BELT", _CODE)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plant.toml").write_text('[console]\npages = ["belts_too:BELT"]')
    configured = read_config(tmp_path / "plant.toml").pages
    said: list[NilometerError] = []
    assert [one.title for one in all_pages(configured, said.append)] == ["Belt"]
    assert said == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("page = []", "the configuration has no console.page"),
        ("pages = 'x'", "console.pages must be a list of pages"),
        ("pages = ['math']", "console.pages names nothing of a module"),
        ("pages = ['no_such_module:P']", "console.pages: no_such_module:P cannot be loaded"),
        ("pages = ['math:pi']", "console.pages: math:pi is not a page of the console"),
        ("pages = ['some_belts:QUERIES']", "the console has a page Others at /console/queries"),
        ("pages = ['some_belts:BELT', 'some_belts:SAME_TITLE']", "a page Belt at /console/belt-2"),
    ],
)
def test_what_is_wrong_with_configured_pages_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    (tmp_path / "some_belts.py").write_text(_CODE)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plant.toml").write_text(f"[console]\n{text}")
    with pytest.raises(InputError) as caught:
        read_config(tmp_path / "plant.toml")
    assert said in caught.value.message


# What they read


async def numbers(tables: AsyncGenerator[pa.Table, None]) -> list[int]:
    """The numbers in the next table."""
    rows = await asyncio.wait_for(anext(tables), LONG)
    values: list[int] = rows["n"].to_pylist()
    return values


def test_newest_rows_first_then_what_comes(tmp_path: Path) -> None:
    async def look() -> None:
        queries = StoredQueries(tmp_path)
        tables = PageResults(cast(Service, queries), "somebody").follow("later", newest=3)
        first = asyncio.create_task(numbers(tables))
        await asyncio.sleep(0.05)
        assert not first.done()  # it waits for a query that is not there yet
        writer = queries.create("later")
        writer.append(numbered(0, 10))
        assert await first == [7, 8, 9]
        writer.append(numbered(10, 2))
        assert (await numbers(tables))[-2:] == [10, 11]
        assert queries.followers.count("later") == 1
        await tables.aclose()
        assert queries.followers.taken == 0
        writer.close()
        queries.close()

    asyncio.run(look())


def test_who_falls_behind_gets_the_newest(tmp_path: Path) -> None:
    async def look() -> None:
        queries = StoredQueries(tmp_path)
        with queries.create("fast") as writer:
            writer.append(numbered(0, 2))
            tables = PageResults(cast(Service, queries), "somebody").follow(
                "fast", newest=4, at_once=50
            )
            assert await numbers(tables) == [0, 1]
            writer.append(numbered(2, 500))
            assert await numbers(tables) == [498, 499, 500, 501]
            writer.append(numbered(502, 1))
            assert await numbers(tables) == [502]
            await tables.aclose()
        queries.close()

    asyncio.run(look())


def test_a_query_that_is_made_again_is_followed_again(tmp_path: Path) -> None:
    async def look() -> None:
        queries = StoredQueries(tmp_path)
        tables = PageResults(cast(Service, queries), "somebody").follow("again", newest=5)
        with queries.create("again") as writer:
            writer.append(numbered(0, 2))
            assert await numbers(tables) == [0, 1]
        queries.drop("again")
        with queries.create("again") as writer:
            writer.append(numbered(7, 1))
            assert await numbers(tables) == [7]
            await tables.aclose()
        queries.close()

    asyncio.run(look())


def test_followers_are_bounded(tmp_path: Path) -> None:
    async def look() -> None:
        queries = StoredQueries(tmp_path, max_followers=1)
        with queries.create("q") as writer:
            writer.append(numbered(0, 1))
            results = PageResults(cast(Service, queries), "somebody")
            one, other = results.follow("q", newest=1), results.follow("q", newest=1)
            assert await numbers(one) == [0]
            with pytest.raises(LimitError):
                await numbers(other)
            await one.aclose()
        queries.close()

    asyncio.run(look())
