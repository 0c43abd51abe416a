"""docs/mining.md and docs/mining: what they say of functions is declared so; examples run."""

from __future__ import annotations

import doctest
import re
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import nilometer.mining
from nilometer.local.database import LocalDatabase
from nilometer.mining.registry import MODULES, FunctionKind, find_function, kind_of
from nilometer.mining.table_function import (
    CheckedCall,
    ColumnArgument,
    OptionArgument,
    OptionKind,
    TableArgument,
    TableFunction,
    WindowUse,
)
from tests.mining_examples import examples_database

DOCS = Path(__file__).parents[2] / "docs"
NEEDS = {"scikit-learn": "sklearn"}
WINDOWS = {"must": WindowUse.NEEDED, "may": WindowUse.ALLOWED, "no": WindowUse.NONE}


def page_of(name: str) -> str:
    return DOCS.joinpath("mining", f"{name.lower()}.md").read_text()


def cells(text: str) -> list[list[str]]:
    """The rows of the tables in a text."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def section(text: str, title: str) -> str:
    """What stands under a title; nothing if it is not there."""
    return next((part for part in text.split("\n## ") if part.startswith(f"{title}\n")), "")


def statements() -> list[tuple[str, str]]:
    """The SQL examples, and where they stand."""
    pages = [DOCS / "mining.md", *sorted(DOCS.glob("mining/*.md"))]
    examples = []
    for page in pages:
        for block in re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL):
            examples += [(page.name, one) for one in block.split("\n\n")]
    return examples


@cache
def database() -> LocalDatabase:
    return examples_database()


def arguments(name: str) -> dict[str, tuple[str, str]]:
    """What the page says of each argument: its meaning and its default."""
    said = {}
    for cell, about, default in cells(section(page_of(name), "Arguments"))[1:]:
        for argument in re.findall(r"`(\w+)`", cell):
            said[argument] = (about, default)
    return said


def of_symbols(name: str) -> set[str]:
    """Options that PATTERNS shares with PERIODS, and leaves to its page."""
    return {"step", "breaks", "levels", "learn", "symbols"} if name == "PATTERNS" else set()


def results(name: str) -> set[str]:
    function = find_function(name)
    options = {one.name: one.default for one in function.options}
    given = {"length": 3, "fwhm": 1.0, "period": 4}
    call = CheckedCall({"value": pa.float64()}, {**options, **given}, window=1)
    return {one.name for one in function.results(call)}


def default_of(argument: ColumnArgument | OptionArgument | TableArgument) -> str | None:
    """As a page writes it; None if the page describes it in words, whatever they are."""
    if argument.required:
        return ""
    if not isinstance(argument, OptionArgument) or argument.default is None:
        return None
    is_text = argument.kind == OptionKind.TEXT
    return f"`'{argument.default}'`" if is_text else f"{argument.default:g}"


def declared(function: TableFunction) -> list[ColumnArgument | OptionArgument | TableArgument]:
    return [*function.columns, *function.options, *function.tables]


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_the_arguments_of_its_function_and_their_defaults(name: str) -> None:
    said, known = arguments(name), declared(find_function(name))
    assert set(said) == {one.name for one in known}
    for argument in known:
        about, default = said[argument.name]
        if argument.name in of_symbols(name):
            assert argument in find_function("PERIODS").options
            continue
        expected = default_of(argument)
        assert default == expected if expected is not None else default, argument.name
        if isinstance(argument, OptionArgument):
            assert all(f"`'{choice}'`" in about for choice in argument.choices), argument.name
        else:
            kind = "a column" if isinstance(argument, ColumnArgument) else "a table ("
            assert about.startswith(kind), argument.name


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_the_columns_of_tables(name: str) -> None:
    for table in find_function(name).tables:
        must = ", ".join(one.name for one in table.columns if one.required)
        may = "".join(f" [, {one.name}]" for one in table.columns if not one.required)
        assert f"a table ({must}{may})" in arguments(name)[table.name][0]


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_the_results_of_its_function(name: str) -> None:
    page = page_of(name)
    text = section(page, "Results")
    listed = {row[0].strip("`") for row in cells(section(page, "What is reported"))}
    words = set(re.findall(r"`([a-z_0-9]+)`", text))
    assert results(name) <= words | listed
    assert words <= results(name) | set(arguments(name)) | {"every"}


@pytest.mark.parametrize("name", MODULES)
def test_the_python_example_of_a_page_runs(name: str) -> None:
    page = DOCS / "mining" / f"{name.lower()}.md"
    tried = doctest.testfile(str(page), module_relative=False)
    assert tried.attempted > 0
    assert not tried.failed


@pytest.mark.parametrize(("page", "statement"), statements())
def test_the_statements_of_the_pages_have_results(page: str, statement: str) -> None:
    assert len(database().sql(statement)), page


def test_every_function_has_a_statement() -> None:
    shown = {page for page, _ in statements()}
    assert shown == {"mining.md", *(f"{name.lower()}.md" for name in MODULES)}


def test_the_index_says_what_functions_are() -> None:
    index = (DOCS / "mining.md").read_text()
    rows = [row for row in cells(index) if row[0].startswith("[")]
    said = {}
    for link, _, kind, window, needs, operator in rows:
        name = link[1 : link.index("]")]
        assert link == f"[{name}](mining/{name.lower()}.md)"
        assert (kind == "an answer") == (kind_of(name) == FunctionKind.ANSWERS)
        assert WINDOWS[window] == find_function(name).window
        assert hasattr(nilometer.mining, operator.strip("`"))
        assert NEEDS.get(needs, needs) == next(iter(find_function(name).needs), "")
        said[name] = operator.strip("`")
    assert set(said) == set(MODULES)
    assert set(said.values()) == set(nilometer.mining.__all__)
