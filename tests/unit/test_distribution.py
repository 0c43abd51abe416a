"""The wheel and the sdist: what is in them, and what they say of themselves."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from nilometer.version import VERSION

ROOT = Path(__file__).parents[2]
ABOUT = f"nilometer-{VERSION}.dist-info"
PAPERS = f"nilometer_papers-{VERSION}.dist-info"


def build(project: Path, made: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(made)],
        cwd=project,
        capture_output=True,
        check=True,
    )
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    made = build(ROOT / "papers", tmp_path_factory.mktemp("papers"))
    return ZipFile(next(made.glob("*.whl")))


@pytest.fixture(scope="module")
def wheel(folder: Path) -> ZipFile:
    return ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    return message_from_bytes(wheel.read(f"{ABOUT}/METADATA"))


def tracked(under: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", under], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    return set(listed.stdout.splitlines())


def test_the_wheel_has_the_package_and_nothing_else(wheel: ZipFile) -> None:
    contents = {name for name in wheel.namelist() if not name.startswith(ABOUT)}
    expected = {name.removeprefix("src/") for name in tracked("src")}
    assert contents == {name for name in expected if (ROOT / "src" / name).is_file()}
    assert "nilometer/py.typed" in contents
    assert not [name for name in contents if not name.startswith("nilometer/")]


def test_the_papers_have_a_wheel_of_their_own(papers: ZipFile) -> None:
    names, below = papers.namelist(), "papers/src/"
    contents = {name for name in names if not name.startswith(PAPERS)}
    expected = {name.removeprefix(below) for name in tracked(below)}
    assert contents == {name for name in expected if (ROOT / below / name).is_file()}
    assert {"nilometer_papers/py.typed", "nilometer_papers/idhm/pipeline.sql"} <= contents
    about = message_from_bytes(papers.read(f"{PAPERS}/METADATA"))
    assert about["Version"] == VERSION
    assert about["License-Expression"] == "Apache-2.0"
    assert f"{PAPERS}/licenses/LICENSE" in names


def test_the_license_is_the_same() -> None:
    assert (ROOT / "papers" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_sdist_has_no_litter(folder: Path) -> None:
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/nilometer/py.typed"} <= names
    assert not names - tracked(".") - {"PKG-INFO"}
    assert {name.partition("/")[0] for name in names} <= {
        *(".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile"),
        *("PKG-INFO", "README.md"),
        *("benchmarks", "deploy", "docs", "examples", "mkdocs.yml", "papers"),
        *("pyproject.toml", "requirements", "scripts"),
        *("src", "tests"),
    }


def test_the_metadata_is_complete(metadata: Message) -> None:
    classifiers = set(metadata.get_all("Classifier", []))
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= classifiers
    assert metadata["Version"] == VERSION
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_without_extras_there_is_no_spark(metadata: Message) -> None:
    needed = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert needed
    assert not [one for one in needed if one.startswith("pyspark")]


def test_the_command_is_installed(wheel: ZipFile) -> None:
    assert wheel.read(f"{ABOUT}/entry_points.txt").decode() == (
        "[console_scripts]\nnilometer = nilometer.cli:main\n"
    )
