"""The commands `nilometer experiments list | run | all`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from nilometer.commands.destination import told_of_writing
from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer_papers.commands.experiment_outputs import require_output, require_page

experiments_app = typer.Typer(
    name="experiments",
    help="Repeat the papers' experiments: figures, numbers, and verdicts on their claims.",
    no_args_is_help=True,
)

_OUTPUT: Final = Path("build/experiments")

_WIDE: Final = 200
"""The width in columns without a terminal: an experiment in one line, for grep."""

QuickOption = Annotated[
    bool, typer.Option("--quick", help="Smaller parameters: less than a minute for most.")
]
SmokeOption = Annotated[
    bool, typer.Option("--smoke", help="A few seconds for each: shows only that it runs.")
]
OutputOption = Annotated[
    Path, typer.Option("--output", metavar="FOLDER", help="Where CSV, PNG and verdicts go.")
]


@experiments_app.command("list")
def list_experiments() -> None:
    """Show all experiments: their names, papers and figures."""
    from nilometer_papers.experiments.registry import EXPERIMENTS  # noqa: PLC0415  takes its time

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("shows")
    for one in EXPERIMENTS:
        table.add_row(one.name, f"{one.paper}, {one.figure}: {one.title}")
    screen = _screen()
    if not screen.is_terminal:
        screen.width = _WIDE
    screen.print(table)


@experiments_app.command("run")
def run_one(
    name: Annotated[str, typer.Argument(help="As shown by `nilometer experiments list`.")],
    quick: QuickOption = False,
    smoke: SmokeOption = False,
    output: OutputOption = _OUTPUT,
) -> None:
    """Run one experiment, with the paper's parameters (minutes to hours) unless told otherwise."""
    from nilometer_papers.commands.show_experiments import run_and_show  # noqa: PLC0415
    from nilometer_papers.experiments.registry import BY_NAME  # noqa: PLC0415

    experiment = BY_NAME.get(name.lower())
    if experiment is None:
        raise InputError(
            f"there is no experiment {name}",
            detail=nearest(name, BY_NAME),
            hint="nilometer experiments list shows their names; nilometer experiments all runs all",
        )
    profile = _profile(quick, smoke)
    require_output(output)
    run_and_show([experiment], profile, output, _screen())


@experiments_app.command("all")
def run_all(
    quick: QuickOption = False,
    smoke: SmokeOption = False,
    output: OutputOption = _OUTPUT,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page of all figures and verdicts."),
    ] = None,
) -> None:
    """Run all experiments, one after the other."""
    from nilometer_papers.commands.show_experiments import run_and_show  # noqa: PLC0415
    from nilometer_papers.experiments.page import write_page  # noqa: PLC0415
    from nilometer_papers.experiments.registry import EXPERIMENTS  # noqa: PLC0415

    profile = _profile(quick, smoke)
    if page is not None:
        require_page(page)
    require_output(output)
    reports = run_and_show(EXPERIMENTS, profile, output, _screen())
    if page is not None:
        with told_of_writing(page):
            write_page(reports, output, page)
        _screen().print(f"The page is {page}")


def _profile(quick: bool, smoke: bool) -> str:
    if quick and smoke:
        raise InputError("--quick and --smoke do not go together", hint="choose one of them")
    return "quick" if quick else "smoke" if smoke else "full"


def _screen() -> Console:
    return Console(highlight=False, markup=False, emoji=False)
