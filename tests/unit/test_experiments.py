"""Every figure of the papers has an experiment, and every experiment runs and judges its claims."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from nilometer import cli
from nilometer.errors import InputError, InstallationError
from nilometer_papers.experiments.experiment import (
    Claim,
    Experiment,
    Outcome,
    Profile,
    Row,
    Setting,
    SkippedError,
)
from nilometer_papers.experiments.measured import values
from nilometer_papers.experiments.page import render_page, write_page
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, draw_spread
from nilometer_papers.experiments.refutations import REFUTATIONS, RefutationKind
from nilometer_papers.experiments.registry import BY_NAME, EXPERIMENTS
from nilometer_papers.experiments.report import Report, Verdict, read_report
from nilometer_papers.experiments.run_experiment import run_experiment

FIGURES = (
    *(f"tr010-figure-{one}" for one in ("7", "8", "9a", "9b", "9c", "13", "14")),
    "tr010-structures",
    "tr010-turns",
    "ssdbm-throughput-hash",
    "ssdbm-throughput-nested-loop",
    "ssdbm-response-time",
    "ssdbm-transactions",
    "ssdbm-partners",
    *(f"golab-table-{one}" for one in ("5", "6", "7", "8")),
    *(f"golab-figure-{one}" for one in ("2", "3a", "3b", "4a", "4b")),
    "golab-looks",
    "golab-section-5",
    "nile-equation-1",
    *(f"nile-figure-{one}" for one in range(10, 17)),
    "nile-load",
    "steam-figure-7",
    "steam-self-scheduling",
    "steam-stream-manager",
    "captures-joins",
    "idhm",
    "idhm-mining",
)
"""What issue and papers name."""

TOGETHER = {
    "golab-figure-3a": "figure_3",
    "golab-figure-3b": "figure_3",
    "golab-table-5": "order_tables",
    "golab-table-6": "order_tables",
    "golab-table-7": "order_tables",
}
"""Figures and tables that show the same for other parameters are in one module."""


def test_every_figure_has_one_experiment() -> None:
    names = [one.name for one in EXPERIMENTS]
    assert sorted(names) == sorted(set(names))
    assert sorted(names) == sorted(FIGURES)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_an_experiment_is_in_the_module_of_its_figure(name: str) -> None:
    paper, _, figure = name.partition("-")
    place = TOGETHER.get(name, figure.replace("-", "_") or "detection")
    module = import_module(f"nilometer_papers.experiments.{paper}.{place}")
    assert BY_NAME[name] in (module.EXPERIMENTS if name in TOGETHER else (module.EXPERIMENT,))


IN_EVERY_RUN = (
    "tr010-figure-7",
    "ssdbm-transactions",
    "golab-table-5",
    "nile-figure-13",
    "steam-figure-7",
    "idhm",
)
"""One of every paper; all the others run in make soak."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in IN_EVERY_RUN else pytest.mark.soak) for one in BY_NAME],
)
def test_every_experiment_runs_and_judges_all_its_claims(name: str, tmp_path: Path) -> None:
    experiment = BY_NAME[name]
    report = run_experiment(experiment, Setting(Profile.SMOKE), tmp_path)
    if report.skipped:
        pytest.skip(report.skipped)
    with (tmp_path / f"{name}.csv").open() as file:
        assert len(list(csv.DictReader(file))) > 1
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert [one.text for one in report.claims] == [one.text for one in experiment.claims]
    assert all(one.figures and one.inequality for one in report.claims)
    assert read_report(tmp_path, name) == report


@pytest.mark.parametrize("paper", ["tr010", "ssdbm", "steam", "nile", "captures"])
def test_what_batching_gains_is_shown_with_every_figure_of_times(paper: str) -> None:
    for one in EXPERIMENTS:
        if one.name.startswith(f"{paper}-"):
            assert any(claim.text.startswith("ours: ") for claim in one.claims)


ROWS: list[Row] = [{"n": 1, "time": 2.5}, {"n": 2, "time": 5.0}]


def holds(rows: list[Row]) -> Outcome:
    return Outcome(True, f"{len(rows)} rows")


def fails(rows: list[Row]) -> Outcome:
    return Outcome(False, "5 > 2.5")


def small(measured: list[Row] | Exception) -> Experiment:
    def measure(setting: Setting) -> list[Row]:
        if isinstance(measured, Exception):
            raise measured
        return measured

    claims = (
        Claim("it is measured", "rows > 0", holds, "never shown"),
        Claim("a grows", "time(2) ≤ time(1)", fails, "it is larger"),
        Claim(
            "ours: the columnar engine counts all",
            "rows = 2",
            lambda rows: Outcome(True, "2 | 2 rows"),
        ),
        Claim("target: there are two", "rows = 2", holds),
    )
    return Experiment(
        "paper-figure-1",
        "Paper",
        "Figure 1",
        "a small one",
        measure,
        lambda figure, rows: figure.subplots().plot([1, 2]),
        claims,
        "none",
    )


def test_reasons_are_given_for_claims_that_do_not_hold(tmp_path: Path) -> None:
    report = run_experiment(small(ROWS), Setting(Profile.QUICK), tmp_path)
    assert report.claims == (
        Verdict("it is measured", "rows > 0", 1, 1, "2 rows"),
        Verdict("a grows", "time(2) ≤ time(1)", 0, 1, "5 > 2.5", "it is larger"),
        Verdict("ours: the columnar engine counts all", "rows = 2", 1, 1, "2 | 2 rows"),
        Verdict("target: there are two", "rows = 2", 1, 1, "2 rows"),
    )
    assert (tmp_path / "paper-figure-1.csv").read_text() == "n,time\n1,2.5\n2,5.0\n"
    assert read_report(tmp_path, "paper-figure-2") is None


def test_what_is_skipped_says_why(tmp_path: Path) -> None:
    skipped = small(SkippedError("there is no data"))
    report = run_experiment(skipped, Setting(Profile.SMOKE), tmp_path)
    assert (report.skipped, report.claims) == ("there is no data", ())
    write_page([report], tmp_path, tmp_path / "page.md")
    assert "Skipped: there is no data." in (tmp_path / "page.md").read_text()


def test_the_page_shows_figures_verdicts_and_commands(tmp_path: Path) -> None:
    report = run_experiment(small(ROWS), Setting(Profile.QUICK), tmp_path)
    write_page([report], tmp_path, tmp_path / "docs.md")
    assert (tmp_path / "docs" / "paper-figure-1.png").exists()
    fixed = Report(**{**vars(report), "seconds": 12.0, "cores": 2, "python": "3.11.0"})
    page = render_page([fixed], "docs")
    for line in (
        "on 2 cores with Python 3.11.0.",
        "1 experiments in 0 minutes: of the papers' claims 1 of 2 held, of ours 1 of 1, "
        "of targets 1 of 1.",
        "| [paper-figure-1](#paper-figure-1) | Paper, Figure 1: a small one | 3 of 4 | 1 | 12 |",
        "- [paper-figure-1](#paper-figure-1): a grows",
        "| [paper-figure-1](#paper-figure-1) | 2 \\| 2 rows |",
        "nilometer experiments run paper-figure-1 --quick",
        "![a small one](docs/paper-figure-1.png)",
        "- **held**: it is measured",
        "  - judged by: rows > 0",
        "  - measured: 2 rows",
        "- **did not hold**: a grows",
        "  - why: it is larger",
    ):
        assert line in page.splitlines()
    assert str(tmp_path) not in page


def seeded(setting: Setting) -> list[Row]:
    return [{"n": n, "time": float(n * setting.seed)} for n in (1, 2)]


def draw_times(figure: Figure, rows: Sequence[Row]) -> None:
    axes = list(figure.subplots(1, 2))
    xs, ys = values(rows, "n"), values(rows, "time")
    draw_curves(axes[0], [Curve("MW", xs, ys)], Axis("n"), Axis("time"))
    axes[0].axhline(3, label="in the paper")
    axes[1].bar(xs, ys)


def test_a_claim_holds_if_it_does_with_every_seed(tmp_path: Path) -> None:
    claims = (
        Claim("a is quick", "time(2) ≤ 4", lambda rows: Outcome(rows[1]["time"] <= 4, "4")),
        Claim("a has two", "rows = 2", holds),
        Claim("a is slow", "time(1) > 9", lambda rows: Outcome(False, f"{rows[0]['time']}")),
    )
    experiment = replace(small(ROWS), measure=seeded, draw=draw_times, claims=claims)
    report = run_experiment(experiment, Setting(Profile.QUICK), tmp_path, seeds=3)
    assert report.claims == (
        Verdict("a is quick", "time(2) ≤ 4", 2, 3, "4"),
        Verdict("a has two", "rows = 2", 3, 3, "2 rows"),
        Verdict("a is slow", "time(1) > 9", 0, 3, "seed 1: 1.0; seed 2: 2.0; seed 3: 3.0"),
    )
    lines = (tmp_path / "paper-figure-1.csv").read_text().splitlines()
    assert lines[::3] == ["run,n,time", "2,1,2.0", "3,2,6.0"]
    assert read_report(tmp_path, "paper-figure-1") == report
    page = render_page([report], "docs")
    assert "**Held with some of the seeds only**" in page
    assert "- **did not hold, held with 2 of 3 seeds**: a is quick" in page
    assert "nilometer experiments run paper-figure-1 --quick --seeds 3" in page
    assert "a small one | 1 of 3 | 3 |" in page


def test_curves_are_means_with_bands() -> None:
    drawn = [Figure() for _ in range(3)]
    for seed, figure in enumerate(drawn, 1):
        draw_times(figure, seeded(Setting(Profile.QUICK, seed=seed)))
    draw_spread(drawn[0], drawn[1:])
    curves, bars = drawn[0].axes
    mean, across = curves.get_lines()
    assert list(mean.get_ydata()) == [2.0, 4.0]
    assert list(across.get_ydata()) == [3, 3]
    (band,) = curves.collections
    assert {tuple(one) for one in band.get_paths()[0].vertices} == {
        (1.0, 1.0),
        (2.0, 2.0),
        (2.0, 6.0),
        (1.0, 3.0),
    }
    assert curves.get_ylim() == (0, pytest.approx(6.3))
    assert [one.get_height() for one in bars.patches] == [2.0, 4.0]
    assert len(bars.collections) == 2


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (3.0, ["1", "1.5", "2", "3"]),
        (90.0, ["1", "2", "5", "10", "20", "50", "100"]),
        (80_000.0, ["1", "10", "100", "1,000", "10,000", "100,000"]),
    ],
)
def test_a_short_logarithmic_axis_has_more_labels_than_powers_of_ten(
    highest: float, labels: list[str]
) -> None:
    figure = Figure()
    axes = figure.subplots()
    draw_curves(axes, [Curve("MW", [1, 2], [1.0, highest])], Axis("n"), Axis("times", log=True))
    low, high = axes.get_ylim()
    ticks = [one for one in axes.yaxis.get_major_locator()() if low <= one <= high]
    assert axes.yaxis.get_major_formatter().format_ticks(ticks) == labels


def test_what_was_run_is_left_as_it_is_when_all_are_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before, after = (replace(small(ROWS), name=name) for name in ("before", "after"))
    registry = "nilometer_papers.experiments.registry"
    monkeypatch.setattr(f"{registry}.EXPERIMENTS", (before, after))
    monkeypatch.setattr(f"{registry}.BY_NAME", {"before": before})
    given = ("--smoke", "--output", str(tmp_path / "page"), "--page", str(tmp_path / "page.md"))
    assert call(monkeypatch, "run", "before", *given) == 0
    page = (tmp_path / "page.md").read_text()
    assert "| [after](#after) | Paper, Figure 1: a small one | skipped: not run yet | | |" in page
    assert "Skipped: not run yet." in page
    never = replace(before, measure=small(InputError("it was run again")).measure)
    monkeypatch.setattr(f"{registry}.EXPERIMENTS", (never, after))
    capsys.readouterr()
    assert call(monkeypatch, "all", "--resume", *given) == 0
    said = capsys.readouterr().out
    assert "before: run before\nafter (0.0 s)" in said
    assert "2 experiments: 8 claims, 6 held, 2 did not" in said
    assert "not run yet" not in (tmp_path / "page.md").read_text()
    (tmp_path / "page.md").unlink()
    monkeypatch.setattr(f"{registry}.EXPERIMENTS", (never,))
    assert call(monkeypatch, "all", "--resume", *given) == 0
    assert (tmp_path / "page.md").exists()
    assert call(monkeypatch, "all", "--resume", "--seeds", "2", *given) == 1
    assert "error: it was run again" in capsys.readouterr().err


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nilometer", "experiments", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_all_experiments_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert call(monkeypatch, "list") == 0
    listed = capsys.readouterr().out
    for one in EXPERIMENTS:
        assert f"{one.name} " in listed
        assert one.title in listed


def test_verdicts_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("nilometer_papers.experiments.registry.BY_NAME", {"small": small(ROWS)})
    output = tmp_path / "out"
    assert call(monkeypatch, "run", "small", "--smoke", "--output", str(output)) == 0
    said = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert said[0].startswith("paper-figure-1 (0.0 s)")
    assert said[1:11] == [
        "held: it is measured",
        "2 rows",
        "did not hold: a grows",
        "5 > 2.5",
        "why: it is larger",
        "held: ours: the columnar engine counts all",
        "2 | 2 rows",
        "held: target: there are two",
        "2 rows",
        "1 experiment: 4 claims, 3 held, 1 did not",
    ]
    assert said[11:] == [
        "With --smoke they mean nothing: it shows only that all runs",
        f"CSV, PNG and verdicts are in {output}",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "tr010-figure-77"),
            "error: there is no experiment tr010-figure-77\n"
            "  detail: did you mean tr010-figure-7?\n"
            "  hint: nilometer experiments list shows their names; "
            "nilometer experiments all runs all\n",
        ),
        (
            ("all", "--quick", "--smoke"),
            "error: --quick and --smoke do not go together\n  hint: choose one of them\n",
        ),
        (
            ("all", "--page", "no/page.md"),
            "error: cannot write no/page.md\n  detail: there is no folder no\n",
        ),
    ],
)
def test_what_cannot_be_is_refused_kindly(
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, *arguments) == 1
    assert capsys.readouterr().err == message


def test_without_matplotlib_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InstallationError, match="needs matplotlib: pip install matplotlib"):
        run_experiment(small(AssertionError("measured")), Setting(Profile.SMOKE), tmp_path)


def test_every_refutation_is_of_a_claim_that_an_experiment_has() -> None:
    for name, start in REFUTATIONS:
        assert any(claim.text.startswith(start) for claim in BY_NAME[name].claims), (name, start)


def test_every_refuted_claim_has_a_test() -> None:
    for claim, one in REFUTATIONS.items():
        assert bool(one.test) == (one.kind is RefutationKind.REFUTED), claim
        if one.test:
            file, test = one.test.split("::")
            assert f"\ndef {test}(" in (Path(__file__).parent / file).read_text(), claim


def test_a_page_says_what_a_claim_that_did_not_hold_is() -> None:
    claims = tuple(
        Verdict(text, "a > b", 0, 1, "1 < 2")
        for text in ("the output rate is that of Equation 1", "nobody knows", "ours: it is fast")
    )
    report = Report("nile-equation-1", "Nile", "Equation 1", "rates", "none", "quick", 1.0, claims)
    page = render_page([report], "images")
    assert "- **refuted**: the output rate is that of Equation 1" in page
    assert "  - the paper is right if: windows are side by side" in page
    assert "  - tested by: `tests/unit/test_equation_1.py::test_what_w_distinct" in page
    assert "- **did not hold**: nobody knows" in page
    assert "**Not the papers', but ours**" in page


def test_what_is_repeated_is_a_claim_that_is_counted() -> None:
    counted = {
        f"{one.name}: {claim.text}"
        for one in EXPERIMENTS
        for claim in one.claims
        if not claim.same_as
    }
    repeated = [claim for one in EXPERIMENTS for claim in one.claims if claim.same_as]
    assert repeated
    for claim in repeated:
        assert claim.same_as in counted
        assert claim.text.startswith("ours: ") == ("ours: " in claim.same_as)


def test_what_repeats_another_claim_is_shown_but_not_counted(tmp_path: Path) -> None:
    first, second = (small(ROWS), replace(small(ROWS), name="paper-figure-2"))
    second = replace(
        second,
        claims=tuple(one.repeats(f"paper-figure-1: {one.text}") for one in second.claims[:2]),
    )
    reports = [run_experiment(one, Setting(Profile.QUICK), tmp_path) for one in (first, second)]
    assert [(one.held, len(one.counted)) for one in reports] == [(3, 4), (0, 0)]
    assert read_report(tmp_path, "paper-figure-2") == reports[1]
    page = render_page(reports, "docs")
    assert "of the papers' claims 1 of 2 held, of ours 1 of 1, of targets 1 of 1." in page
    assert "[paper-figure-2](#paper-figure-2): a grows" not in page
    assert "- **held, not counted again**: it is measured" in page
    assert "- **did not hold, not counted again**: a grows" in page
    assert "  - repeats [paper-figure-1](#paper-figure-1): a grows" in page
