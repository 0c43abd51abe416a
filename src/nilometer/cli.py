"""The command line: `nilometer demo`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from nilometer.errors import NilometerError
from nilometer.version import VERSION

app = typer.Typer(
    name="nilometer",
    help="A stream database for sensor data on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nilometer {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A stream database for sensor data on Apache Spark."""


@app.command()
def demo(
    seconds: Annotated[int, typer.Option(min=1, help="How long the cameras run.")] = 30,
    rate: Annotated[int, typer.Option(min=1, help="How many objects enter per second.")] = 5000,
) -> None:
    """Track objects that move past four cameras, live on Spark, and check every track."""
    from nilometer.apps.cameras.demo import run_demo  # noqa: PLC0415  Spark takes its time to load

    if not run_demo(seconds, rate, Console(highlight=False)):
        raise typer.Exit(1)


def main() -> None:
    """Run the command line; what goes wrong is told in words, never as a traceback."""
    try:
        app()
    except NilometerError as error:
        Console(stderr=True, highlight=False).print(f"[red]error:[/] {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
