"""Where experiments cannot write, they say so before they measure anything."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nilometer import cli
from nilometer_papers.experiments.experiment import Experiment, Profile, Setting
from nilometer_papers.experiments.page import write_page
from nilometer_papers.experiments.run_experiment import run_experiment


def experiment(**changes: object) -> Experiment:
    parts = {
        "name": "small",
        "paper": "Paper",
        "figure": "Figure 1",
        "title": "a small one",
        "measure": lambda setting: [{"n": 1}],
        "draw": lambda figure, rows: figure.subplots(),
        "claims": (),
        "parameters": "none",
    }
    return Experiment(**{**parts, **changes})


def never(setting: Setting) -> list:
    raise AssertionError("it was measured")


def failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> str:
    """What the command says when it fails."""
    monkeypatch.setattr(sys, "argv", ["nilometer", "experiments", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    return capsys.readouterr().err


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "nilometer_papers.experiments.registry.EXPERIMENTS", [experiment(measure=never)]
    )
    (tmp_path / "file").touch()
    (tmp_path / "folder.md").mkdir()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("--output", "file"),
            "error: cannot write to file\n  detail: it is a file\n"
            "  hint: name a folder: --output build/experiments\n",
        ),
        (
            ("--output", "file/below"),
            "error: cannot write file/below\n  detail: Not a directory\n",
        ),
        *(
            (
                ("--page", page),
                f"error: cannot write {page}\n"
                "  detail: figures go to a folder of the page's name without its suffix\n"
                "  hint: name a file with one: --page experiments.md\n",
            )
            for page in ("folder.md", "page")
        ),
        (
            ("--page", "file.md"),
            "error: cannot write file.md\n  detail: its figures go to file, which is a file\n",
        ),
    ],
)
def test_what_cannot_be_written_is_reported_before_anything_is_measured(
    words: tuple[str, ...],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert failure(capsys, monkeypatch, "all", *words) == expected


@pytest.mark.parametrize("words", [("--output", "."), ("--page", "page.md")])
def test_a_folder_without_rights_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda folder, mode, **how: not mode & os.W_OK)
    said = failure(capsys, monkeypatch, "all", *words)
    assert "detail: you have no right to write there" in said


def test_what_goes_wrong_on_the_way_is_reported_with_its_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer_papers.experiments.registry.BY_NAME", {"small": experiment()})
    Path("out/small.csv").mkdir(parents=True)
    said = failure(capsys, monkeypatch, "run", "small", "--output", "out")
    assert said == "error: cannot read or write out/small.csv\n  detail: Is a directory\n"


def test_a_page_may_show_the_figures_where_they_are(tmp_path: Path) -> None:
    output = tmp_path / "page"
    report = run_experiment(experiment(), Setting(Profile.SMOKE), output)
    write_page([report], output, tmp_path / "page.md")
    assert (output / "small.png").exists()
    assert "(page/small.png)" in (tmp_path / "page.md").read_text()
