"""Run an experiment: measure, write a CSV file, draw a PNG file, judge the claims, store all."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from nilometer.extras import require_package
from nilometer_papers.experiments.experiment import Experiment, Row, Setting, SkippedError
from nilometer_papers.experiments.plots import draw_spread
from nilometer_papers.experiments.report import Report, make_report, write_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOTS_PER_INCH = 110


def run_experiment(
    experiment: Experiment, setting: Setting, folder: Path, seeds: int = 1
) -> Report:
    """The experiment's report, once NAME.csv, NAME.png and NAME.verdicts.json are in the folder.

    It is measured with each of the seeds 1, 2 … up to `seeds`.
    """
    require_package("drawing figures", "matplotlib")
    folder.mkdir(parents=True, exist_ok=True)
    began = perf_counter()
    try:
        every = range(1, seeds + 1)
        tracked = setting.progress.track(every, "seeds") if seeds > 1 else every
        measured = [experiment.measure(replace(setting, seed=seed)) for seed in tracked]
    except SkippedError as error:
        for kind in ("csv", "png"):
            (folder / f"{experiment.name}.{kind}").unlink(missing_ok=True)
        report = make_report(experiment, setting.profile, 0.0, (), skipped=str(error.message))
        write_report(report, folder)
        return report
    seconds = perf_counter() - began
    write_rows(measured, folder / f"{experiment.name}.csv")
    draw_figure(experiment, measured, folder / f"{experiment.name}.png")
    report = make_report(experiment, setting.profile, seconds, measured)
    write_report(report, folder)
    return report


def write_rows(measured: Sequence[Sequence[Row]], path: Path) -> None:
    """Write all measurements, a line for each point; `run` is the seed, if there are several."""
    rows = measured[0] if len(measured) == 1 else _numbered(measured)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _numbered(measured: Sequence[Sequence[Row]]) -> list[Row]:
    return [{"run": seed, **row} for seed, rows in enumerate(measured, 1) for row in rows]


def draw_figure(experiment: Experiment, measured: Sequence[Sequence[Row]], path: Path) -> None:
    """The figure on one page: means over the seeds, with bands from the least to the most."""
    figure, *others = (_drawn(experiment, rows) for rows in measured)
    draw_spread(figure, others)
    figure.suptitle(f"{experiment.paper}, {experiment.figure}: {experiment.title}", wrap=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={"Software": None})


def _drawn(experiment: Experiment, rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415  an extra, which is slow to load

    figure = Figure(figsize=(11, 5), layout="constrained")
    experiment.draw(figure, rows)
    return figure
