"""The commands `nilometer experiments list | run | all`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer_papers.commands.experiment_outputs import require_output, require_page

if TYPE_CHECKING:
    from nilometer_papers.experiments.experiment import Experiment

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
SeedsOption = Annotated[
    int,
    typer.Option(
        "--seeds",
        min=1,
        help="How often each is run, with other random numbers; a claim has to hold every time.",
    ),
]
OutputOption = Annotated[
    Path, typer.Option("--output", metavar="FOLDER", help="Where CSV, PNG and verdicts go.")
]
PageOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write a page of all experiments that have verdicts in the output folder.",
    ),
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
    seeds: SeedsOption = 1,
    output: OutputOption = _OUTPUT,
    page: PageOption = None,
) -> None:
    """Run one experiment, with the paper's parameters (minutes to hours) unless told otherwise."""
    from nilometer_papers.experiments.registry import BY_NAME  # noqa: PLC0415  takes its time

    experiment = BY_NAME.get(name.lower())
    if experiment is None:
        raise InputError(
            f"there is no experiment {name}",
            detail=nearest(name, BY_NAME),
            hint="nilometer experiments list shows their names; nilometer experiments all runs all",
        )
    _run([experiment], _profile(quick, smoke), seeds, output, page)


@experiments_app.command("all")
def run_all(
    quick: QuickOption = False,
    smoke: SmokeOption = False,
    seeds: SeedsOption = 1,
    output: OutputOption = _OUTPUT,
    page: PageOption = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Leave out those that have such verdicts in the folder."),
    ] = False,
) -> None:
    """Run all experiments, one after the other."""
    from nilometer_papers.experiments.registry import EXPERIMENTS  # noqa: PLC0415  takes its time

    _run(EXPERIMENTS, _profile(quick, smoke), seeds, output, page, resume=resume)


def _run(
    experiments: Sequence[Experiment],
    profile: str,
    seeds: int,
    output: Path,
    page: Path | None,
    *,
    resume: bool = False,
) -> None:
    from nilometer_papers.commands.show_experiments import Runs, run_and_show  # noqa: PLC0415
    from nilometer_papers.experiments.experiment import Profile  # noqa: PLC0415

    if page is not None:
        require_page(page)
    require_output(output)
    run_and_show(experiments, Runs(Profile(profile), seeds, output, page, resume), _screen())


def _profile(quick: bool, smoke: bool) -> str:
    if quick and smoke:
        raise InputError("--quick and --smoke do not go together", hint="choose one of them")
    return "quick" if quick else "smoke" if smoke else "full"


def _screen() -> Console:
    return Console(highlight=False, markup=False, emoji=False)
