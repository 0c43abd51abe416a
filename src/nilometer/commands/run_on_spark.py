"""Runs statements over files, or over a database, on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console

from nilometer.commands.answers import in_shown_order, require_names
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.follow_on_spark import follow_query
from nilometer.commands.options import Follow, Format, Moment, Source
from nilometer.commands.progress import Progress
from nilometer.commands.request import Request
from nilometer.commands.session import open_session
from nilometer.commands.spark_answer import SparkAnswer
from nilometer.commands.spark_files import read_static, read_streaming
from nilometer.commands.statements import OneStatement
from nilometer.commands.write_answer import open_screen, show_plan, write_answer, write_plans
from nilometer.database import OUTCOME, Database, connect
from nilometer.errors import InputError
from nilometer.local.find_files import find_files
from nilometer.spark.failures import explained_failures
from nilometer.spark.left_out import left_out_notice
from nilometer.sql.explain.explain_plan import named_engine
from nilometer.sql.questions import END

_ENDS_HERE: Final = (
    "it stops with this command, and resumes where it was when a program opens the database "
    "and calls db.resume()"
)


def run_on_spark(
    request: Request, statements: Sequence[OneStatement], progress: Progress, engine: str
) -> None:
    """Answer the statements in order; `engine`, shown below plans, says why Spark is used."""
    with open_database(request, progress) as db, open_screen(request.output) as screen:
        for number, statement in enumerate(statements):
            progress.say(f"Statement {number + 1} of {len(statements)}")
            if number:
                screen.print()
            if statement.is_explain and request.output.form is Format.TABLE:
                plan = db.explain(
                    statement.sql, buckets=request.buckets, parameters=statement.parameters
                )
                show_plan(named_engine(plan, engine), screen, progress)
            else:
                _run(db, statement, request, screen, progress)


def explain_on_spark(
    request: Request,
    statements: Sequence[OneStatement],
    form: str,
    progress: Progress,
    engine: str,
) -> None:
    """Show the plans of the statements."""
    with open_database(request, progress) as db:
        plans = [db.explain(one.sql, form=form, parameters=one.parameters) for one in statements]
        write_plans([named_engine(plan, engine) for plan in plans], progress)


@contextmanager
def open_database(request: Request, progress: Progress) -> Iterator[Database]:
    """A database with all sources in it."""
    progress.say("Starting Spark")
    streams = request.sources.streams
    every = (*streams, *request.sources.tables)
    for source in every:  # report missing files before Spark takes time to start
        find_files(source.name, source.path)
    with explained_failures(), open_session() as spark, _connect(spark, request) as db:
        for source in every:
            progress.say(f"Looking at the files of {source.name}")
            with explained_failures(f"{source.name} ({source.path})"):
                if source in streams:
                    _create_stream(db, spark, source, request.follow)
                else:
                    db.create_table(source.name, read_static(spark, source))
        yield db
        progress.say("Stopping Spark")


def _connect(spark: SparkSession, request: Request) -> Database:
    if request.location is None:
        return connect(spark, execution=request.execution)
    location, execution = request.location, request.execution
    return connect(
        spark,
        path=location.folder,
        catalog=location.catalog,
        logs=location.logs,
        execution=execution,
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


def _run(
    db: Database,
    statement: OneStatement,
    request: Request,
    screen: Console,
    progress: Progress,
) -> None:
    output, follow = request.output, request.follow
    at = request.at if statement.is_query and not statement.is_explain else None
    values = statement.parameters
    if statement.is_query and follow is None and at is None and db.asks_past(statement.sql, values):
        rows = ArrowAnswer(db.select(statement.sql, parameters=values))
        require_names(rows.columns, output.form)
        write_answer(in_shown_order(rows, statement), output, screen, progress, None)
        return
    frame = db.sql(statement.sql, at=_instant(at), buckets=request.buckets, parameters=values)
    answer = SparkAnswer(frame)
    if not statement.is_query and answer.columns == [OUTCOME]:
        with progress.aside():
            screen.print(frame.collect()[0][0], soft_wrap=True)
            if db.queries:
                screen.print(_ENDS_HERE, style="dim", soft_wrap=True)
        return
    if frame.isStreaming and follow is None:
        raise InputError(
            "this query runs for as long as its sensors do",
            hint="add --follow to watch it, or let it run on its own: CREATE QUERY name AS …",
        )
    require_names(answer.columns, output.form)
    if follow is not None and frame.isStreaming:
        tally = follow_query(answer, statement.sql, output, follow, progress, screen)
        with progress.aside():
            progress.console.print(tally.summary())
    else:
        write_answer(in_shown_order(answer, statement), output, screen, progress, at)
    if (notice := left_out_notice(frame)) is not None:
        with progress.aside():
            progress.console.print(notice)


def _instant(at: Moment | None) -> str | datetime | None:
    return None if at is None else END if at.instant is None else at.instant
