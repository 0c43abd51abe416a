"""The papers' package beside the product: how it is found, and what is said where it is not."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest

from nilometer import cli
from nilometer.commands import demo, installed_commands
from nilometer.errors import InputError, SqlError
from nilometer.local.database import LocalDatabase
from nilometer.operators import offered_algorithms
from nilometer.operators.offered_algorithms import find_algorithm
from nilometer.spark.ship_package import zip_packages
from nilometer.version import VERSION
from nilometer_papers.algorithms.registry import ALGORITHMS
from tests.installed_package import install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text())["project"]
JOIN = "SELECT /*+ {} */ A.v FROM A, B WINDOW = 1 SECOND WHERE A.k = B.k"
CODE = """
import typer
greetings = typer.Typer(help="Says hello.")
@greetings.command()
def hello():
    print("hello")
def show(seconds, console):
    console.print(f"{seconds} s")
    return seconds < 5
nothing = 3
"""


@pytest.fixture
def without_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(group: str, taken: object = ()) -> dict[str, EntryPoint]:
        return {}

    for module in (demo, installed_commands, offered_algorithms):
        monkeypatch.setattr(module, "installed", none)


@pytest.fixture
def db() -> LocalDatabase:
    made = LocalDatabase()
    times = pa.array([1, 2], pa.timestamp("us", "UTC"))
    for name in "AB":
        made.create_stream(name, pa.table({"ts": times, "k": [1, 2], "v": [3, 4]}), time="ts")
    return made


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str) -> str:
    """What a command writes, wherever it does; it ends by itself."""
    monkeypatch.setattr("sys.argv", ["nilometer", *line.split()])
    with pytest.raises(SystemExit):
        cli.main()
    return "".join(capsys.readouterr())


def test_it_is_of_the_version_of_the_product() -> None:
    assert PROJECT["version"] == VERSION
    assert f"nilometer[mining]=={VERSION}" in PROJECT["dependencies"]


def test_what_it_adds_is_there() -> None:
    groups = PROJECT["entry-points"]
    assert set(groups) == {
        offered_algorithms.ENTRY_POINTS,
        installed_commands.ENTRY_POINTS,
        demo.ENTRY_POINTS,
    }
    for group, entries in groups.items():
        for name, value in entries.items():
            assert EntryPoint(name, value, group).load()


@pytest.mark.parametrize("line", ["experiments list", "demo idhm"])
@pytest.mark.usefixtures("without_papers")
def test_commands_without_it_say_what_to_install(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = f"nilometer {line.removesuffix(' list')} needs nilometer-papers"
    assert said(monkeypatch, capsys, line) == f"error: {refusal}: pip install nilometer-papers\n"


@pytest.mark.usefixtures("without_papers")
def test_help_without_it_does_not_list_experiments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "experiments" not in said(monkeypatch, capsys, "--help")
    assert "No such command" in said(monkeypatch, capsys, "dance")


def test_help_with_it_lists_experiments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "experiments" in said(monkeypatch, capsys, "--help")


@pytest.mark.usefixtures("without_papers")
def test_a_hint_without_it_says_what_to_install(db: LocalDatabase) -> None:
    with pytest.raises(SqlError, match="there is no algorithm 'MW' here") as caught:
        db.sql(JOIN.format("MW"))
    assert caught.value.hint == "pip install nilometer-papers"
    assert caught.value.place is not None
    assert db.sql(JOIN.replace("/*+ {} */", "")).num_rows


def test_algorithms_are_found_by_ways_to_write_them() -> None:
    assert find_algorithm("bew").paper == "SSDBM section 3.1"
    assert find_algorithm("lazy").name == "LAZY_NLJ"
    assert find_algorithm("gca-hw").name == "GCA_HW"
    with pytest.raises(InputError, match="there is no algorithm 'BOW'") as caught:
        find_algorithm("BOW")
    assert caught.value.detail == "did you mean BEW?"
    assert caught.value.hint == f"choose {', '.join(ALGORITHMS)}"


def test_odd_algorithms_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = offered_algorithms.ENTRY_POINTS
    install(tmp_path, "odd_algorithms", group, "odd = odd_algorithms:A", "A = ['MW']")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="algorithms of odd are not algorithms"):
        find_algorithm("MW")


def test_commands_of_other_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = "greet = greeting:greetings\nsql = greeting:greetings\nodd = greeting:nothing"
    install(tmp_path, "greeting", installed_commands.ENTRY_POINTS, entries, CODE)
    monkeypatch.syspath_prepend(tmp_path)
    assert said(monkeypatch, capsys, "greet") == "hello\n"
    assert "Says hello" not in said(monkeypatch, capsys, "sql --help")
    assert "command odd is not a command" in said(monkeypatch, capsys, "odd")


def test_demos_of_other_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, "showing", demo.ENTRY_POINTS, "show = showing:show", CODE)
    monkeypatch.syspath_prepend(tmp_path)
    assert said(monkeypatch, capsys, "demo show --seconds 3") == "3 s\n"
    assert said(monkeypatch, capsys, "demo shoe").endswith("hint: did you mean show?\n")
    assert "show has no rate" in said(monkeypatch, capsys, "demo show --rate 3")


def test_executors_get_it_too(tmp_path: Path) -> None:
    with ZipFile(zip_packages(tmp_path)) as archive:
        names = set(archive.namelist())
    assert {"nilometer/spark/host.py", "nilometer_papers/algorithms/hosted_join.py"} <= names
