"""The command line: `nilometer demo | serve | sql | explain | sensors | tokens | experiments`."""

from __future__ import annotations

import gc
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
from nilometer.commands.demo import demo
from nilometer.commands.experiments import experiments_app
from nilometer.commands.progress import Progress
from nilometer.commands.read_text import read_text
from nilometer.commands.sensors import sensors_app
from nilometer.commands.serve import serve
from nilometer.commands.tokens import tokens_app
from nilometer.errors import InputError, NilometerError
from nilometer.version import VERSION

app = typer.Typer(
    name="nilometer",
    help="A stream database for sensor data on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(experiments_app)
app.add_typer(sensors_app)
app.add_typer(tokens_app)
app.command()(demo)
app.command()(serve)


class PlanFormat(StrEnum):
    """How plans are written."""

    text = "text"
    dot = "dot"


StatementArgument = Annotated[
    str | None, typer.Argument(help="A query in quotes; or several, with ; between them.")
]
FileOption = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Read the statements from a file; - is stdin."
    ),
]
StreamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--stream",
        metavar="NAME=PATH:TIMECOLUMN",
        help="A stream: a file, or a folder of files, and the column that holds its time. "
        "Numbers need a unit, A=a.csv:ts[epoch s] (or ms, us, ns), texts that are not ISO 8601 a "
        "pattern, A=a.csv:\"ts[format 'dd-MMM-yyyy H:mm:ss']\". A=a.csv:start..end names two "
        "columns, from one of which to the other a row counts. "
        "With --follow the column may be left out: the time of arrival. May be repeated.",
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="What :NAME stands for in the statement: a number, text, or a constant such as "
        "\"DATE '2026-01-31'\". Repeatable.",
    ),
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="NAME=PATH", help="A static table, from a file or a folder. Repeatable."
    ),
]


DatabaseOption = Annotated[
    Path | None,
    typer.Option(
        "--db",
        metavar="FOLDER",
        help="A database with sensors, tables and queries, kept in this folder; made if missing.",
    ),
]
CatalogOption = Annotated[
    str | None,
    typer.Option("--catalog", metavar="URL", help="With --db: its catalog in PostgreSQL."),
]
LogsOption = Annotated[
    str | None,
    typer.Option("--logs", metavar="URI", help="With --db: its logs, such as s3://bucket/folder."),
]


EngineOption = Annotated[
    options.EngineName,
    typer.Option(
        help="What answers: this process, at once, or Spark; auto takes this process for small "
        "files where it gives what Spark would. EXPLAIN says which, and why."
    ),
]
LocalLimitOption = Annotated[
    int,
    typer.Option(min=0, metavar="MEGABYTES", help="Up to how large files auto takes this process."),
]


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
    form: Annotated[
        options.Format,
        typer.Option("--format", help="How the answer is written. Times are in UTC."),
    ] = options.Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write to this file (for parquet, a new folder), not to stdout."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="How many rows a table shows; with --follow, at a time.")
    ] = 50,
    buckets: Annotated[
        int | None,
        typer.Option(min=1, help="How many parts the work has; by default one per core."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT|end",
            help="Of an answer that changes, show what it is at this instant (UTC), or in the "
            "end, instead of its changes.",
        ),
    ] = None,
    execution: Annotated[
        options.ExecutionName,
        typer.Option(help="How answers that change learn that time has passed."),
    ] = options.ExecutionName.AUTO,
    engine: EngineOption = options.EngineName.AUTO,
    local_limit: LocalLimitOption = options.LOCAL_MEGABYTES,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on: read files as they are put into the folders."),
    ] = False,
    catch_up: Annotated[
        bool,
        typer.Option("--catch-up", help="As --follow, but end when all files there are read."),
    ] = False,
    answer: Annotated[
        bool,
        typer.Option(
            "--answer",
            help="Show the whole answer whenever it has changed, instead of the changes.",
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
            help="After how long a silence a stream (or any) no longer holds up the others.",
            rich_help_panel="Only with --follow or --catch-up",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Remember there how far the query has come: the same command resumes it.",
            rich_help_panel="Only with --follow or --catch-up",
        ),
    ] = None,
) -> None:
    """Query files of sensor data, or (--db) a database: once, or (--follow) as long as rows come.

    Files are Parquet, CSV with a header, or JSON lines, told by their names:
    .parquet, .csv, .json, .jsonl, .ndjson; CSV and JSON also with .gz.

    [bold]Example[/]: what passes two cameras within five seconds

      nilometer sql --stream A=camera1.csv:ts --stream B=camera2.csv:ts "
      SELECT A.obj_id, A.ts, B.ts FROM A, B
      WINDOW(A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id"

    Aggregates, DISTINCT, EXCEPT and the like over sliding windows change as
    time passes. What is shown are the changes: at _time so many copies of a
    row come (_diff +1) or go (_diff -1). With --at it is the answer itself.

    [bold]Example[/]: sales within an hour, as they are at noon

      nilometer sql --stream Sales=sales.csv:ts --at "2026-01-31 12:00:00" "
      SELECT store, SUM(price) AS total FROM Sales [RANGE 1 HOUR] GROUP BY store"
    """
    sources = options.read_sources(stream or [], table or [])
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
            options.read_kept(db, catalog, logs),
            engine,
            local_limit,
            read_parameters(param or []),
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
    form: Annotated[
        PlanFormat, typer.Option("--format", help="Text to read, or a graph for Graphviz.")
    ] = PlanFormat.text,
    engine: EngineOption = options.EngineName.AUTO,
    local_limit: LocalLimitOption = options.LOCAL_MEGABYTES,
) -> None:
    """Say what a query will do: its windows, what it keeps and for how long, its order of joins."""
    text, sources = read_text(statement, file), options.read_sources(stream or [], table or [])
    with Progress(_errors()) as progress:
        from nilometer.commands.parameter_option import read_parameters  # noqa: PLC0415
        from nilometer.commands.request import Request  # noqa: PLC0415  takes its time
        from nilometer.commands.run_sql import run_explain  # noqa: PLC0415

        kept = options.read_kept(db, catalog, logs)
        values = read_parameters(param or [])
        request = Request(
            text,
            sources,
            kept=kept,
            engine=engine,
            local_megabytes=local_limit,
            parameters=values,
        )
        run_explain(request, form, progress)


def _errors() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def main() -> None:
    """Run the command line; what goes wrong is told in words, never as a traceback."""
    gc.disable()  # what is imported stays: to look through it again and again takes long
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
    _errors().print(Text("error: ", style="red"), Text(error), sep="", soft_wrap=True)
    sys.exit(1)
