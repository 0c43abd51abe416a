"""Run an experiment: measure, write a CSV file, draw a PNG file, judge the claims, store all."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from nilometer.extras import require_package
from nilometer_papers.experiments.experiment import Experiment, Row, Setting, SkippedError
from nilometer_papers.experiments.report import Report, make_report, write_report

_DOTS_PER_INCH = 110


def run_experiment(experiment: Experiment, setting: Setting, folder: Path) -> Report:
    """The experiment's report, once NAME.csv, NAME.png and NAME.verdicts.json are in the folder."""
    require_package("drawing figures", "matplotlib")
    folder.mkdir(parents=True, exist_ok=True)
    began = perf_counter()
    try:
        rows = experiment.measure(setting)
    except SkippedError as error:
        for kind in ("csv", "png"):
            (folder / f"{experiment.name}.{kind}").unlink(missing_ok=True)
        report = make_report(experiment, setting.profile, 0.0, (), skipped=str(error.message))
        write_report(report, folder)
        return report
    seconds = perf_counter() - began
    write_rows(rows, folder / f"{experiment.name}.csv")
    draw_figure(experiment, rows, folder / f"{experiment.name}.png")
    report = make_report(experiment, setting.profile, seconds, rows)
    write_report(report, folder)
    return report


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write all measurements, a line for each point."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw_figure(experiment: Experiment, rows: Sequence[Row], path: Path) -> None:
    """The figure on one page."""
    from matplotlib.figure import Figure  # noqa: PLC0415  an extra, which is slow to load

    figure = Figure(figsize=(11, 5), layout="constrained")
    experiment.draw(figure, rows)
    figure.suptitle(f"{experiment.paper}, {experiment.figure}: {experiment.title}", wrap=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={"Software": None})
