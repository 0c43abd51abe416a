"""Command-line options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nilometer.commands import options

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
        "Numbers need a unit, A=a.csv:ts\\[epoch s] (or ms, us, ns), texts that are not ISO 8601 a "
        "pattern, A=a.csv:\"ts\\[format 'dd-MMM-yyyy H:mm:ss']\". A=a.csv:start..end names two "
        "columns, the start and end of a row's validity. "
        "With --follow the column may be left out: the arrival time. May be repeated.",
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
        help="What runs the query: this process, or Spark; auto uses this process for small "
        "files where it gives the same answer. EXPLAIN says which, and why."
    ),
]
LocalLimitOption = Annotated[
    int,
    typer.Option(
        min=0, metavar="MEGABYTES", help="Total size of files up to which auto uses this process."
    ),
]
