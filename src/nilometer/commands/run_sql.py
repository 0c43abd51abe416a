"""`nilometer sql` and `nilometer explain`: statements over files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from nilometer.commands.answers import (
    header,
    headings_of,
    is_changelog,
    made_lines,
    require_changing,
    require_names,
    take_rows,
)
from nilometer.commands.destination import open_output
from nilometer.commands.files import find_files
from nilometer.commands.follow import follow_query
from nilometer.commands.options import (
    ExecutionName,
    Follow,
    Format,
    Kept,
    Moment,
    Output,
    Source,
    Sources,
)
from nilometer.commands.progress import Progress
from nilometer.commands.read_files import read_static, read_streaming
from nilometer.commands.row_order import in_order_of_time, read_order
from nilometer.commands.session import open_session
from nilometer.commands.statements import OneStatement, split_statements
from nilometer.commands.tables import TableView, count_line
from nilometer.database import OUTCOME, Database, connect
from nilometer.errors import InputError
from nilometer.spark.failures import told_in_words
from nilometer.spark.left_out import told_left_out
from nilometer.spark.snapshot import snapshot

_ENDS_HERE: Final = (
    "it stops with this command, and goes on where it was when a program opens the database "
    "and says db.resume()"
)


@dataclass(frozen=True)
class Request:
    """What `nilometer sql` was asked to do."""

    text: str
    sources: Sources
    output: Output = field(default_factory=Output)
    follow: Follow | None = None
    buckets: int | None = None
    at: Moment | None = None
    execution: ExecutionName = ExecutionName.AUTO
    kept: Kept | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stream in self.sources.streams:
            if stream.time is None and self.follow is None:
                raise InputError(
                    f"{stream.name} needs a time column",
                    hint=f"write --stream {stream.name}={stream.path}:TIMECOLUMN; only with "
                    "--follow can it be the time of arrival",
                )
        if self.at is not None and self.follow is not None:
            raise InputError(
                "--at is for files that are read once, as they are",
                hint="leave it out to see the changes, or add --answer to see the answer change",
            )
        if self.follow is not None and self.follow.answer and self.output.form is not Format.TABLE:
            raise InputError(
                f"--answer is shown as a table, not as {self.output.form}",
                hint=f"without --answer the changes are written as {self.output.form}",
            )

    def statements(self) -> list[OneStatement]:
        """The statements of the text, if this output can take them all."""
        found = split_statements(self.text, self.parameters)
        queries = [one for one in found if one.is_query and not one.is_explain]
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
    with _database(request, progress) as db, _screen(request.output) as screen:
        for number, statement in enumerate(statements):
            progress.say(f"Statement {number + 1} of {len(statements)}")
            if number:
                screen.print()
            _run(db, statement, request, screen, progress)


def run_explain(request: Request, form: str, progress: Progress) -> None:
    """Say what the statements would do."""
    statements = request.statements()
    with _database(request, progress) as db:
        plans = [db.explain(one.sql, form=form, parameters=one.parameters) for one in statements]
        with progress.aside(), open_output(None) as out:
            out.write("\n\n".join(plan.rstrip() for plan in plans).encode() + b"\n")


@contextmanager
def _database(request: Request, progress: Progress) -> Iterator[Database]:
    """A database with all sources in it."""
    progress.say("Starting Spark")
    streams = request.sources.streams
    every = (*streams, *request.sources.tables)
    for source in every:  # what is not there is said before Spark takes its time to start
        find_files(source.name, source.path)
    with told_in_words(), open_session() as spark, _connect(spark, request) as db:
        for source in every:
            progress.say(f"Looking at the files of {source.name}")
            with told_in_words(f"{source.name} ({source.path})"):
                if source in streams:
                    _create_stream(db, spark, source, request.follow)
                else:
                    db.create_table(source.name, read_static(spark, source))
        yield db
        progress.say("Stopping Spark")


def _connect(spark: SparkSession, request: Request) -> Database:
    if request.kept is None:
        return connect(spark, execution=request.execution)
    kept, execution = request.kept, request.execution
    return connect(
        spark, path=kept.folder, catalog=kept.catalog, logs=kept.logs, execution=execution
    )


def _create_stream(
    db: Database, spark: SparkSession, source: Source, follow: Follow | None
) -> None:
    if follow is None:
        db.create_stream(source.name, read_static(spark, source), time=source.times)
        return
    db.create_stream(
        source.name,
        read_streaming(spark, source),
        time=source.times,
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
    output, follow = request.output, request.follow
    if statement.is_explain and output.form is Format.TABLE:
        plan = db.explain(statement.sql, buckets=request.buckets, parameters=statement.parameters)
        with progress.aside():
            screen.out(plan.rstrip(), highlight=False)
        return
    answer = db.sql(statement.sql, buckets=request.buckets, parameters=statement.parameters)
    if not statement.is_query and answer.columns == [OUTCOME]:
        with progress.aside():
            screen.print(answer.collect()[0][0], soft_wrap=True)
            if db.queries:
                screen.print(_ENDS_HERE, style="dim", soft_wrap=True)
        return
    if answer.isStreaming and follow is None:
        raise InputError(
            "this query goes on for as long as its sensors do",
            hint="add --follow to watch it, or let it run on its own: CREATE QUERY name AS …",
        )
    require_names(answer, output.form)
    if follow is not None and answer.isStreaming:
        tally = follow_query(answer, statement.sql, output, follow, progress, screen)
        with progress.aside():
            progress.console.print(tally.summary())
    elif request.at is not None and not statement.is_explain:
        then = _answer_at(answer, statement.sql, request.at)
        _write(then, output, screen, progress, if_empty=_when_empty(request.at))
    else:
        _write(
            in_order_of_time(answer) if is_changelog(answer) else answer, output, screen, progress
        )
    if (told := told_left_out(answer)) is not None:
        with progress.aside():
            progress.console.print(told)


def _answer_at(changelog: DataFrame, sql: str, at: Moment) -> DataFrame:
    """What a changelog says at one moment, in the order that the statement asks for."""
    require_changing(changelog, "--at")
    then = snapshot(changelog, at.instant or datetime.max.replace(tzinfo=UTC))
    return read_order(sql, headings_of(then)).sort_frame(then)


def _when_empty(at: Moment) -> str:
    """What is said of an answer without rows."""
    return "" if at.instant is not None else ": in the end all windows of time are empty"


def _write(
    answer: DataFrame, output: Output, screen: Console, progress: Progress, if_empty: str = ""
) -> None:
    """The whole answer of a batch run."""
    if output.form is Format.TABLE:
        taken = take_rows(answer, output.limit)
        with progress.aside():
            TableView(screen, headings_of(answer)).show(taken.rows)
            what = "change" if is_changelog(answer) else "row"
            counted = count_line(len(taken.rows), taken.total, what)
            screen.print(counted + ("" if taken.total else if_empty), style="dim", soft_wrap=True)
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
