"""`nilometer demo`: a running application to look at in a browser."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.console import Console

from nilometer.errors import InputError
from nilometer.extras import papers_needed, require_extras
from nilometer.model.installed import installed, load_installed
from nilometer.model.names import nearest

ENTRY_POINTS: Final = "nilometer.demos"
"""Each entry names a function of the seconds to run (None: until Ctrl-C) and the console to write
to; it returns whether everything succeeded."""
_CAMERAS: Final = "cameras"
_OF_PAPERS: Final = frozenset({"idhm"})
_RATE: Final = 1000


def demo(
    application: Annotated[
        str,
        typer.Argument(
            help="cameras: objects that pass four cameras. idhm: hazardous materials in boxes, "
            "from nilometer-papers.",
        ),
    ] = _CAMERAS,
    seconds: Annotated[
        int | None, typer.Option(min=1, help="How long to run; by default until Ctrl-C.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(min=1, help=f"For cameras: how many objects enter per second ({_RATE})."),
    ] = None,
) -> None:
    """Start a server with an application and sensors of its own, to be looked at in a browser.

    With --seconds it ends by itself, and its answers are checked against the true ones.
    """
    console = Console(highlight=False)
    if application == _CAMERAS:
        is_right = _run_cameras(seconds, rate or _RATE, console)
    elif rate is not None:
        raise InputError(f"{application} has no rate", hint="leave --rate out")
    else:
        is_right = _run_installed(application, seconds, console)
    if not is_right:
        raise typer.Exit(1)


def _run_cameras(seconds: int | None, rate: int, console: Console) -> bool:
    require_extras("nilometer demo", "server")
    from nilometer.demo.cameras.demo import run_demo  # noqa: PLC0415  Spark takes its time to load

    return run_demo(seconds, rate, console)


def _run_installed(name: str, seconds: int | None, console: Console) -> bool:
    demos = installed(ENTRY_POINTS, taken={_CAMERAS})
    if name in demos:
        require_extras(f"nilometer demo {name}", "server")
        return bool(load_installed(demos[name], "demo")(seconds, console))
    if name in _OF_PAPERS:
        raise papers_needed(f"nilometer demo {name}")
    available = [_CAMERAS, *demos]
    raise InputError(
        f"there is no demo {name!r}",
        detail=f"known: {', '.join(available)}",
        hint=nearest(name, available),
    )
