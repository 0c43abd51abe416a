"""Run experiments, and show their progress and what they found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from nilometer.commands.destination import writing_errors
from nilometer.errors import InputError
from nilometer.extras import require_package
from nilometer.model.names import count
from nilometer_papers.experiments import registry
from nilometer_papers.experiments.experiment import Experiment, Profile, Setting
from nilometer_papers.experiments.page import write_page
from nilometer_papers.experiments.report import Report, Verdict, make_report, read_report
from nilometer_papers.experiments.run_experiment import run_experiment

Item = TypeVar("Item")


@dataclass(frozen=True)
class Bars:
    """Progress of an experiment as bars, one below the other where steps have substeps."""

    progress: Progress

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items, one by one, as they are worked on."""
        task = self.progress.add_task(title, total=len(items))
        for item in items:
            yield item
            self.progress.advance(task)
        self.progress.remove_task(task)


@dataclass(frozen=True)
class Runs:
    """How experiments are run."""

    profile: Profile
    seeds: int
    output: Path
    page: Path | None
    """A page of all experiments, written anew whenever one ends."""
    resume: bool = False
    """Whether experiments that were run in this way before are left as they are."""


def run_and_show(experiments: Sequence[Experiment], runs: Runs, screen: Console) -> None:
    """Run them one after the other; each reports its verdicts when it ends."""
    require_package("nilometer experiments", "matplotlib")
    reports = []
    for number, experiment in enumerate(experiments, start=1):
        place = f"{number}/{len(experiments)} " if len(experiments) > 1 else ""
        if (before := _before(experiment, runs)) is not None:
            reports.append(before)
            screen.print(Text(f"{experiment.name}: run before", style="dim"))
            continue
        with _bars(place + experiment.name) as progress:
            setting = Setting(runs.profile, Bars(progress))
            reports.append(_run(experiment, setting, runs))
        _show(reports[-1], screen)
        _write_page(runs)
    if runs.resume:
        _write_page(runs)  # all of them may have been run before
    _sum_up(reports, runs.output, screen)
    if runs.page is not None:
        screen.print(f"The page is {runs.page}")


def _before(experiment: Experiment, runs: Runs) -> Report | None:
    """The report of an experiment that need not run again."""
    report = read_report(runs.output, experiment.name) if runs.resume else None
    if report is None or report.skipped:
        return None
    return report if (report.profile, report.seeds) == (runs.profile, runs.seeds) else None


def _write_page(runs: Runs) -> None:
    """A page of all experiments, also of those that were not run."""
    if runs.page is None:
        return
    reports = [
        read_report(runs.output, one.name)
        or make_report(one, runs.profile, 0.0, (), skipped="not run yet")
        for one in registry.EXPERIMENTS
    ]
    with writing_errors(runs.page):
        write_page(reports, runs.output, runs.page)


def _run(experiment: Experiment, setting: Setting, runs: Runs) -> Report:
    output = runs.output
    try:
        return run_experiment(experiment, setting, output, runs.seeds)
    except OSError as error:
        raise InputError(
            f"cannot read or write {error.filename or output}",
            detail=error.strerror or str(error),
        ) from None


def _bars(title: str) -> Progress:
    """Bars on standard error that disappear when the work is done; none without a terminal."""
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn(title, style="bold", markup=False),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _show(report: Report, screen: Console) -> None:
    if report.skipped:
        screen.print(Text(f"{report.name}: skipped, {report.skipped}", style="yellow"))
        return
    screen.print(Text(f"{report.name} ({report.seconds:.1f} s) {report.title}", style="bold"))
    for claim in report.claims:
        _show_claim(claim, screen)


def _show_claim(claim: Verdict, screen: Console) -> None:
    word, style = ("held", "green") if claim.holds else ("did not hold", "yellow")
    if not claim.holds and claim.held:
        word += f", held with {claim.held} of {claim.tried} seeds"
    screen.print(Padding(Text.assemble((f"{word}: ", style), claim.text), (0, 0, 0, 2)))
    screen.print(Padding(Text(claim.figures, style="dim"), (0, 0, 0, 6)))
    if claim.reason:
        screen.print(Padding(Text(f"why: {claim.reason}"), (0, 0, 0, 6)))


def _sum_up(reports: Sequence[Report], output: Path, screen: Console) -> None:
    claims, held = sum(len(one.counted) for one in reports), sum(one.held for one in reports)
    skipped = sum(bool(one.skipped) for one in reports)
    left_out = f" ({skipped} skipped)" if skipped else ""
    screen.print(
        f"{count(len(reports), 'experiment')}{left_out}: "
        f"{count(claims, 'claim')}, {held} held, {claims - held} did not"
    )
    if any(one.profile == Profile.SMOKE for one in reports):
        screen.print("With --smoke they mean nothing: it shows only that all runs")
    screen.print(Text(f"CSV, PNG and verdicts are in {output}"), soft_wrap=True)
