"""`nilometer demo`: an application at work, to be looked at in a browser."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer
from rich.console import Console

from nilometer.errors import InputError
from nilometer.extras import require_extras

_RATE: Final = 1000


class Application(StrEnum):
    """What can be shown."""

    CAMERAS = "cameras"
    IDHM = "idhm"


def demo(
    application: Annotated[
        Application,
        typer.Argument(
            help="cameras: objects that pass four cameras. idhm: hazardous materials in boxes.",
            show_default=True,
        ),
    ] = Application.CAMERAS,
    seconds: Annotated[
        int | None, typer.Option(min=1, help="How long it runs; until Ctrl-C unless given.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(min=1, help=f"Of cameras: how many objects enter per second ({_RATE})."),
    ] = None,
) -> None:
    """Start a server with an application and sensors of its own, to be looked at in a browser.

    With --seconds it ends by itself, and its answers are checked against the true ones.
    """
    if application is Application.IDHM and rate is not None:
        raise InputError("idhm has no rate", hint="leave --rate out")
    _require_all(application)
    if not _run(application, seconds, rate or _RATE, Console(highlight=False)):
        raise typer.Exit(1)


def _require_all(application: Application) -> None:
    """All that is missing is told at once, before anything starts."""
    if application is Application.IDHM:
        require_extras("nilometer demo idhm", "server", "mining")
    else:
        require_extras("nilometer demo", "server")


def _run(application: Application, seconds: int | None, rate: int, console: Console) -> bool:
    if application is Application.IDHM:
        from nilometer.apps.idhm.demo import run_demo as run_idhm  # noqa: PLC0415  takes its time

        return run_idhm(seconds, console)
    from nilometer.apps.cameras.demo import run_demo  # noqa: PLC0415  Spark takes its time to load

    return run_demo(seconds, rate, console)
