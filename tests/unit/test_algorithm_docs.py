"""docs/algorithms.md has every algorithm, with its own file, paper and windows."""

from __future__ import annotations

import inspect
from pathlib import Path
from random import Random

import pytest

from nilometer_papers.algorithms.in_time_order import InTimeOrder
from nilometer_papers.algorithms.registry import ALGORITHMS, Windows
from nilometer_papers.experiments.registry import BY_NAME
from tests.arrivals import generate

DOCS = Path(__file__).parents[2] / "docs"
SHORT = {
    Windows.UNIFORM: "uniform",
    Windows.PER_STREAM: "per stream",
    Windows.PATH: "path",
    Windows.ANY: "any",
    Windows.ROWS: "rows",
}


def table() -> dict[str, list[str]]:
    lines = (DOCS / "algorithms.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows if row and row[0].startswith("`")}


def test_the_table_has_the_algorithms_of_the_registry() -> None:
    assert set(table()) == set(ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_row_says_where_an_algorithm_is_and_what_it_takes(name: str) -> None:
    what, file, paper, windows, condition, _ = table()[name]
    entry = ALGORITHMS[name]
    assert what
    assert paper == entry.paper
    assert windows == SHORT[entry.windows]
    assert condition == ("key" if entry.needs_key else "any")
    algorithm = entry.start(generate(Random(1), entry.windows).task)
    made = algorithm.inner if isinstance(algorithm, InTimeOrder) else algorithm
    source = Path(inspect.getfile(type(made)))
    assert file == f"[{source.name}](../papers/src/nilometer_papers/algorithms/{source.name})"
    assert (DOCS / file[file.index("(") + 1 : -1]).resolve() == source.resolve()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_experiments_in_the_table_exist(name: str) -> None:
    assert set(filter(None, table()[name][-1].split(", "))) <= set(BY_NAME)
