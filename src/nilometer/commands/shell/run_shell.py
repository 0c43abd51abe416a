"""`nilometer shell`: opens the place of a shell, and decides how it is used."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from nilometer.commands.options import DatabaseLocation, Format, Sources
from nilometer.commands.progress import Progress
from nilometer.commands.read_text import read_file
from nilometer.commands.request import Request
from nilometer.commands.server_access import Server
from nilometer.commands.shell.catalog import list_all
from nilometer.commands.shell.display import Display, new_console, read_form
from nilometer.commands.shell.interrupts import GivenUpError, run_until_interrupted
from nilometer.commands.shell.place import Place
from nilometer.commands.shell.session import LeaveError, Shell
from nilometer.extras import require_extras
from nilometer.garbage import collect_as_usual


@dataclass(frozen=True)
class ShellRequest:
    """A request of `nilometer shell`."""

    server: Server | None = None
    location: DatabaseLocation | None = None
    sources: Sources = field(default_factory=Sources)
    file: str | None = None
    keep_going: bool = False
    form: Format = Format.TABLE
    limit: int | None = None
    parameters: dict[str, object] = field(default_factory=dict)

    @property
    def is_interactive(self) -> bool:
        """Whether a person is typing."""
        return self.file is None and sys.stdin.isatty() and sys.stdout.isatty()


def run_shell(request: ShellRequest) -> bool:
    """Run statements until there are no more; return whether all succeeded."""
    if request.is_interactive:
        require_extras("nilometer shell", "shell")
    collect_as_usual()
    form = read_form(request.form)
    display = Display(form=form, is_paged=request.is_interactive)
    display.limit = request.limit or display.limit
    with _open(request) as place, closing(display):
        shell = Shell(
            place,
            display,
            is_interactive=request.is_interactive,
            keep_going=request.keep_going,
            parameters=dict(request.parameters),
        )
        if request.is_interactive:
            _type(shell)
            return True
        lines, name = _lines(request.file)
        try:
            return shell.run(lines, name)
        except LeaveError:
            return True


def _type(shell: Shell) -> None:
    from nilometer.commands.shell.history import open_history  # noqa: PLC0415  takes its time
    from nilometer.commands.shell.terminal import Terminal  # noqa: PLC0415

    place = shell.place
    try:
        listed = run_until_interrupted(lambda: list_all(place), place.cancel)
    except GivenUpError:
        raise KeyboardInterrupt from None
    Terminal(shell, open_history()).run(listed)


def _lines(file: str | None) -> tuple[Iterable[str], str | None]:
    """The lines to run, and the name of their file for errors."""
    if file is None or file == "-":
        return sys.stdin, "stdin"
    return read_file(file).splitlines(keepends=True), file


@contextmanager
def _open(request: ShellRequest) -> Iterator[Place]:
    """The server, otherwise the database of this process, that runs the statements."""
    if request.server is not None:
        require_extras("nilometer shell", "client")
        from nilometer.commands.shell.server_place import ServerPlace  # noqa: PLC0415

        with closing(ServerPlace(request.server)) as place:
            yield place
        return
    require_extras("nilometer shell --db", "spark")
    from nilometer.commands.run_on_spark import open_database  # noqa: PLC0415
    from nilometer.commands.shell.database_place import DatabasePlace  # noqa: PLC0415

    asked = Request("", request.sources, location=request.location)
    with Progress(new_console(stderr=True)) as progress, open_database(asked, progress) as db:
        # PySpark would cancel the work of all queries at Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        progress.end()
        title = "files" if request.location is None else f"the database {request.location.folder}"
        yield DatabasePlace(db, f"{title}, in this process: its queries run while the shell does")
