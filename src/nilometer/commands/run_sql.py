"""`nilometer sql` and `nilometer explain`: statements over files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from nilometer.commands.answers import (
    header,
    is_number,
    is_time,
    made_lines,
    require_names,
    take_rows,
)
from nilometer.commands.destination import open_output
from nilometer.commands.failures import told_in_words
from nilometer.commands.files import find_files
from nilometer.commands.follow import follow_query
from nilometer.commands.options import Follow, Format, Output, Source, Sources
from nilometer.commands.progress import Progress
from nilometer.commands.read_files import read_static, read_streaming
from nilometer.commands.session import open_session
from nilometer.commands.statements import OneStatement, split_statements
from nilometer.commands.tables import Heading, TableView, count_line
from nilometer.database import Database, connect
from nilometer.errors import InputError


@dataclass(frozen=True)
class Request:
    """What `nilometer sql` was asked to do."""

    text: str
    sources: Sources
    output: Output = field(default_factory=Output)
    follow: Follow | None = None
    buckets: int | None = None

    def __post_init__(self) -> None:
        for stream in self.sources.streams:
            if stream.time is None and self.follow is None:
                raise InputError(
                    f"{stream.name} needs a time column",
                    hint=f"write --stream {stream.name}={stream.path}:TIMECOLUMN; only with "
                    "--follow can it be the time of arrival",
                )

    def statements(self) -> list[OneStatement]:
        """The statements of the text, if this output can take them all."""
        found = split_statements(self.text)
        queries = [one for one in found if not one.is_explain]
        if self.output.form is not Format.TABLE and len(found) > 1:
            raise InputError(
                f"the answers to {len(found)} statements cannot go to one {self.output.form} file",
                hint="run them one by one, or show them with --format table",
            )
        if self.follow is not None and len(queries) > 1:
            raise InputError(
                f"--follow runs one query, got {len(queries)}",
                hint="run each in a terminal of its own",
            )
        return found


def run_sql(request: Request, progress: Progress) -> None:
    """Answer the statements in order."""
    statements = request.statements()
    sources, follow = request.sources, request.follow
    with _database(sources, follow, progress) as db, _screen(request.output) as screen:
        for number, statement in enumerate(statements):
            progress.say(f"Statement {number + 1} of {len(statements)}")
            if number:
                screen.print()
            _run(db, statement, request, screen, progress)


def run_explain(request: Request, form: str, progress: Progress) -> None:
    """Say what the statements would do."""
    statements = request.statements()
    with _database(request.sources, None, progress) as db:
        plans = [db.explain(statement.sql, form=form) for statement in statements]
        with progress.aside(), open_output(None) as out:
            out.write("\n\n".join(plan.rstrip() for plan in plans).encode() + b"\n")


@contextmanager
def _database(sources: Sources, follow: Follow | None, progress: Progress) -> Iterator[Database]:
    """A database with all sources in it."""
    progress.say("Starting Spark")
    every = (*sources.streams, *sources.tables)
    for source in every:  # what is not there is said before Spark takes its time to start
        find_files(source.name, source.path)
    with told_in_words(), open_session() as spark:
        db = connect(spark)
        for source in every:
            progress.say(f"Looking at the files of {source.name}")
            with told_in_words(f"{source.name} ({source.path})"):
                if source in sources.streams:
                    _create_stream(db, spark, source, follow)
                else:
                    db.create_table(source.name, read_static(spark, source))
        yield db
        progress.say("Stopping Spark")


def _create_stream(
    db: Database, spark: SparkSession, source: Source, follow: Follow | None
) -> None:
    if follow is None:
        db.create_stream(source.name, read_static(spark, source), time=source.time)
        return
    db.create_stream(
        source.name,
        read_streaming(spark, source),
        time=source.time,
        lateness=follow.lateness.get(source.name),
        idle=follow.idle.get(source.name),
    )


@contextmanager
def _screen(output: Output) -> Iterator[Console]:
    """Where tables and plans go: the standard output, or a file."""
    if output.form is not Format.TABLE or output.path is None:
        yield Console(highlight=False, markup=False, emoji=False)
        return
    with open_output(output.path) as out:
        text = io.TextIOWrapper(out, encoding="utf-8")
        yield Console(file=text, highlight=False, markup=False, emoji=False)
        text.detach()


def _run(
    db: Database,
    statement: OneStatement,
    request: Request,
    screen: Console,
    progress: Progress,
) -> None:
    output = request.output
    if statement.is_explain and output.form is Format.TABLE:
        plan = db.explain(statement.sql, buckets=request.buckets)
        with progress.aside():
            screen.out(plan.rstrip(), highlight=False)
        return
    answer = db.sql(statement.sql, buckets=request.buckets)
    require_names(answer, output.form)
    if request.follow is not None and answer.isStreaming:
        tally = follow_query(answer, _headings(answer), output, request.follow, progress, screen)
        with progress.aside():
            progress.console.print(tally.summary())
    else:
        _write(answer, output, screen, progress)


def _write(answer: DataFrame, output: Output, screen: Console, progress: Progress) -> None:
    """The whole answer of a batch run."""
    if output.form is Format.TABLE:
        taken = take_rows(answer, output.limit)
        with progress.aside():
            TableView(screen, _headings(answer)).show(taken.rows)
            counted = count_line(len(taken.rows), taken.total)
            screen.print(counted, style="dim", soft_wrap=True)
    elif output.form is Format.PARQUET:
        _write_parquet(answer, output)
    else:
        first = header(answer.columns, output.form)
        with (
            made_lines(answer, output.form) as lines,
            progress.aside(),
            open_output(output.path) as out,
        ):
            out.write(first)
            lines.copy_to(out)


def _write_parquet(answer: DataFrame, output: Output) -> None:
    if output.path is not None and output.path.exists():
        raise InputError(
            f"there is already something at {output.path}", hint="name a folder that is new"
        )
    answer.write.parquet(str(output.path))


def _headings(answer: DataFrame) -> list[Heading]:
    return [Heading(f.name, is_number(f), is_time(f)) for f in answer.schema.fields]
