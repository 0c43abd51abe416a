"""The command line: `nilometer demo | serve | shell | sql | explain | backup | …`."""

from __future__ import annotations

import sys
import tempfile
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from nilometer.commands import options
from nilometer.commands.backup import backup, restore
from nilometer.commands.check import check
from nilometer.commands.command_options import (
    CatalogOption,
    DatabaseOption,
    EngineOption,
    FileOption,
    LocalLimitOption,
    LogsOption,
    ParameterOption,
    StatementArgument,
    StreamOption,
    TableOption,
)
from nilometer.commands.demo import demo
from nilometer.commands.download import download
from nilometer.commands.installed_commands import WithInstalled
from nilometer.commands.move_logs import move_logs
from nilometer.commands.progress import Progress
from nilometer.commands.read_text import read_text
from nilometer.commands.sensors import sensors_app
from nilometer.commands.serve import serve
from nilometer.commands.server_access import (
    CaOption,
    ServerOption,
    TokenFileOption,
    ask_server,
)
from nilometer.commands.shell_command import shell, start_shell
from nilometer.commands.tables import safe_text
from nilometer.commands.tokens import tokens_app
from nilometer.errors import InputError, NilometerError
from nilometer.garbage import collect_seldom
from nilometer.version import VERSION

app = typer.Typer(
    name="nilometer",
    cls=WithInstalled,
    help="A stream database for sensor data on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(sensors_app)
app.add_typer(tokens_app)
app.command()(demo)
app.command()(serve)
app.command()(backup)
app.command()(restore)
app.command()(check)
app.command()(move_logs)
app.command()(download)
app.command()(shell)


class PlanFormat(StrEnum):
    """How plans are written."""

    text = "text"
    dot = "dot"


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
def sql(  # noqa: PLR0913  one argument per option
    statement: StatementArgument = None,
    *,
    file: FileOption = None,
    stream: StreamOption = None,
    table: TableOption = None,
    param: ParameterOption = None,
    db: DatabaseOption = None,
    catalog: CatalogOption = None,
    logs: LogsOption = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    form: Annotated[
        options.Format,
        typer.Option("--format", help="Output format. Times are in UTC."),
    ] = options.Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this file (for parquet, a new folder) instead of stdout.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of rows in a table; with --follow, at a time."),
    ] = 50,
    buckets: Annotated[
        int | None,
        typer.Option(min=1, help="Number of parallel buckets; by default one per core."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT|end",
            help="For a changing answer, show it as of this instant (UTC), or at the end, "
            "instead of its changes.",
        ),
    ] = None,
    execution: Annotated[
        options.ExecutionName,
        typer.Option(help="How operators of a changing answer learn that time has passed."),
    ] = options.ExecutionName.AUTO,
    engine: EngineOption = options.EngineName.AUTO,
    local_limit: LocalLimitOption = options.LOCAL_MEGABYTES,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Keep running: read new files as they appear in the folders."
        ),
    ] = False,
    catch_up: Annotated[
        bool,
        typer.Option(
            "--catch-up", help="Like --follow, but stop once all existing files have been read."
        ),
    ] = False,
    answer: Annotated[
        bool,
        typer.Option(
            "--answer",
            help="Show the whole answer each time it changes, instead of the changes.",
            rich_help_panel="Only with --follow or --catch-up",
        ),
    ] = False,
    lateness: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]DURATION",
            help="How far a stream (or all) may be out of order, such as 2s; later rows are "
            "dropped and counted. Repeatable.",
            rich_help_panel="Only with --follow or --catch-up",
        ),
    ] = None,
    idle: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]DURATION",
            help="How long a stream (or any) may be silent before the others stop waiting for it.",
            rich_help_panel="Only with --follow or --catch-up",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Store the progress of the query here; the same command resumes it.",
            rich_help_panel="Only with --follow or --catch-up",
        ),
    ] = None,
) -> None:
    """Query files of sensor data, or (--db) a database: once, or (--follow) as long as rows come.

    Files are Parquet, CSV with a header, or JSON lines, recognised by extension:
    .parquet, .csv, .json, .jsonl, .ndjson; CSV and JSON also with .gz.

    [bold]Example[/]: what passes two cameras within five seconds

      nilometer sql --stream A=camera1.csv:ts --stream B=camera2.csv:ts "
      SELECT A.obj_id, A.ts, B.ts FROM A, B
      WINDOW(A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id"

    Aggregates, DISTINCT, EXCEPT and the like over sliding windows change as
    time passes. The output is the changes: at _time, copies of a
    row are added (_diff +1) or retracted (_diff -1). With --at it is the answer itself.

    [bold]Example[/]: sales within an hour, as they are at noon

      nilometer sql --stream Sales=sales.csv:ts --at "2026-01-31 12:00:00" "
      SELECT store, SUM(price) AS total FROM Sales [RANGE 1 HOUR] GROUP BY store"
    """
    sources = options.read_sources(stream or [], table or [])
    location = options.read_location(db, catalog, logs)
    asked = ask_server(server, token_file, ca, location, "sql")
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    if statement is None and file is None and is_typed and not (follow or catch_up):
        start_shell(asked, location, sources, form=form, param=param or [])
    following = None
    if follow or catch_up:
        late = options.read_durations("--lateness", lateness or [], sources.streams)
        silent = options.read_durations("--idle", idle or [], sources.streams)
        following = options.Follow(late, silent, checkpoint, catch_up, answer)
    else:
        options.require_follow(
            {
                "--answer": answer,
                "--lateness": lateness,
                "--idle": idle,
                "--checkpoint": checkpoint,
            }
        )
    moment = options.read_moment(at) if at is not None else None
    text, chosen = read_text(statement, file), options.Output(form, output, limit)
    with Progress(_errors()) as progress:
        from nilometer.commands.parameter_option import read_parameters  # noqa: PLC0415
        from nilometer.commands.request import Request  # noqa: PLC0415  takes its time
        from nilometer.commands.run_sql import run_sql  # noqa: PLC0415

        request = Request(
            text,
            sources,
            chosen,
            following,
            buckets,
            moment,
            execution,
            location,
            engine,
            local_limit,
            read_parameters(param or []),
            asked,
        )
        run_sql(request, progress)


@app.command()
def explain(  # noqa: PLR0913, PLR0917  one argument for each option
    statement: StatementArgument = None,
    file: FileOption = None,
    stream: StreamOption = None,
    table: TableOption = None,
    param: ParameterOption = None,
    db: DatabaseOption = None,
    catalog: CatalogOption = None,
    logs: LogsOption = None,
    server: ServerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    form: Annotated[
        PlanFormat, typer.Option("--format", help="Text to read, or a graph for Graphviz.")
    ] = PlanFormat.text,
    engine: EngineOption = options.EngineName.AUTO,
    local_limit: LocalLimitOption = options.LOCAL_MEGABYTES,
) -> None:
    """Say what a query will do: its windows, what it keeps and for how long, its join order."""
    text, sources = read_text(statement, file), options.read_sources(stream or [], table or [])
    location = options.read_location(db, catalog, logs)
    asked = ask_server(server, token_file, ca, location, "explain")
    with Progress(_errors()) as progress:
        from nilometer.commands.parameter_option import read_parameters  # noqa: PLC0415
        from nilometer.commands.request import Request  # noqa: PLC0415  takes its time
        from nilometer.commands.run_sql import run_explain  # noqa: PLC0415

        values = read_parameters(param or [])
        request = Request(
            text,
            sources,
            location=location,
            engine=engine,
            local_megabytes=local_limit,
            parameters=values,
            server=asked,
        )
        run_explain(request, form, progress)


def _errors() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def main() -> None:
    """Run the command line; problems are reported in words, never as a traceback."""
    collect_seldom()
    try:
        app()
    except NilometerError as error:
        _tell(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        with tempfile.NamedTemporaryFile(
            "w", prefix="nilometer-error-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exc(file=file)
        what = f"{type(error).__name__}: {error}".split("\n")[0]
        unforeseen = InputError(
            "this should not have happened", detail=what[:300], hint=f"please report {file.name}"
        )
        _tell(str(unforeseen))


def _tell(error: str) -> None:
    """Say what went wrong, as it stands: an underlined place must not be wrapped."""
    text = Text(safe_text(error))
    _errors().print(Text("error: ", style="red"), text, sep="", soft_wrap=True)
    sys.exit(1)
