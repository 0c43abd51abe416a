"""Statements over files, answered in this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from rich.console import Console

from nilometer.commands.answers import in_shown_order, require_names
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.followed import Followed
from nilometer.commands.options import Format, Source
from nilometer.commands.progress import Progress
from nilometer.commands.request import Request
from nilometer.commands.statements import OneStatement
from nilometer.commands.without_pandas import without_pandas
from nilometer.commands.write_answer import open_screen, show_plan, write_answer, write_plans
from nilometer.errors import OnlySparkError, UnavailableError
from nilometer.kernels.text_values import has_text
from nilometer.local.database import Instant, LocalDatabase, Prepared
from nilometer.local.find_files import Files, find_files, require_folder
from nilometer.local.read_files import FileReader, read_files
from nilometer.model.left_out import describe_left_out
from nilometer.model.time import read_instant
from nilometer.sql.catalog import Relation
from nilometer.sql.declare import InputColumns, describe_stream, describe_table, end_column
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.parameters import Parameters
from nilometer.sql.parse.query_text import ExplainFormat
from nilometer.sql.statements import Statement, read_query

_ENGINE: Final = "local, in this process"
_PACKED: Final = 10
"""The approximate compression factor of text."""


def run_here(request: Request, statements: Sequence[OneStatement], progress: Progress) -> None:
    """Answer the statements in order; OnlySparkError, before any output, if Spark is needed."""
    with _as_quick_as_can_be(statements):
        _run(request, statements, progress)


def _run(request: Request, statements: Sequence[OneStatement], progress: Progress) -> None:
    source = _Sources.open(request, statements, progress)
    answers = [source.answer(one, request) for one in statements]
    with open_screen(request.output) as screen:
        for number, (statement, answer) in enumerate(zip(statements, answers, strict=True)):
            if number:
                screen.print()
            _write(source, statement, answer, request, screen, progress)


def explain_here(
    request: Request, statements: Sequence[OneStatement], form: str, progress: Progress
) -> None:
    """Show the plans of the statements."""
    source = _Sources.open(request, statements, progress)
    chosen = ExplainFormat(form.upper())
    write_plans([source.explain(one, request, chosen) for one in statements], progress)


def _as_quick_as_can_be(statements: Sequence[OneStatement]) -> AbstractContextManager[None]:
    """Run without pandas, unless a table function may need it."""
    mines = any(_read_query(one).tree.find(TableCall) for one in statements if one.is_query)
    return nullcontext() if mines else without_pandas()


def _read_query(statement: OneStatement) -> Statement:
    return read_query(statement.sql, Parameters(statement.parameters))


@dataclass(frozen=True)
class _Sources:
    """All streams and tables, with their rows read."""

    db: LocalDatabase
    followed: tuple[Followed, ...]

    @classmethod
    def open(
        cls, request: Request, statements: Sequence[OneStatement], progress: Progress
    ) -> _Sources:
        _require_fitting(request, statements)
        every = (*request.sources.streams, *request.sources.tables)
        files = {one.name: find_files(one.name, one.path) for one in every}
        _require_small(request, list(files.values()))
        db = LocalDatabase(request.buckets or 1, request.execution)
        followed = []
        for one in every:
            progress.say(f"Reading the files of {one.name}")
            reader, rows = _read(one, files[one.name], request)
            followed.append(Followed(files[one.name], reader, rows))
            _declare(db, one, rows, request)
        return cls(db, tuple(followed[: len(request.sources.streams)]))

    def prepare(self, statement: OneStatement, request: Request) -> Prepared:
        at = "--at" if request.at is not None and not statement.is_explain else None
        prepared = self.db.prepare(
            _read_query(statement), at_instant=at, goes_on=request.follow is not None
        )
        for field in prepared.schema:
            is_file = request.output.form is Format.PARQUET and pat.is_duration(field.type)
            if is_file or not has_text(field.type):
                raise OnlySparkError(f"column {field.name} is of the type {field.type}")
        return prepared

    def explain(
        self, statement: OneStatement, request: Request, form: ExplainFormat | None = None
    ) -> str:
        from nilometer.sql.explain.explain_plan import explain_plan, named_engine  # noqa: PLC0415

        wanted = _read_query(statement).explain or form or ExplainFormat.TEXT
        plan = self.prepare(statement, request).question.plan
        return named_engine(explain_plan(plan, wanted), _ENGINE)

    def answer(self, statement: OneStatement, request: Request) -> pa.Table | Prepared | str:
        """Rows, a plan as text, or a query to be followed."""
        if statement.is_explain:
            return self.explain(statement, request)
        prepared = self.prepare(statement, request)
        if request.follow is not None and not prepared.question.is_plain:
            return prepared
        at = request.at
        moment = None if at is None else at.instant
        instant = None if at is None else Instant(None if moment is None else read_instant(moment))
        try:
            return prepared.run_all(self.db.tables, instant)
        except UnavailableError as error:
            raise OnlySparkError(error.message, detail=error.detail) from None


def _write(
    source: _Sources,
    statement: OneStatement,
    answer: pa.Table | Prepared | str,
    request: Request,
    screen: Console,
    progress: Progress,
) -> None:
    if isinstance(answer, str):
        if request.output.form is Format.TABLE:
            show_plan(answer, screen, progress)
            return
        answer = pa.table({"plan": [answer]})
    if isinstance(answer, Prepared):
        from nilometer.commands.follow_here import follow_here  # noqa: PLC0415  rarely needed

        tally = follow_here(answer, source.followed, statement.sql, request, progress, screen)
        with progress.aside():
            progress.console.print(tally.summary())
        return
    shown = in_shown_order(ArrowAnswer(answer), statement)
    require_names(shown.columns, request.output.form)
    write_answer(shown, request.output, screen, progress, request.at)
    if (
        notice := describe_left_out(source.db.rows_without_time(_read_query(statement).tree))
    ) is not None:
        with progress.aside():
            progress.console.print(notice)


def _require_fitting(request: Request, statements: Sequence[OneStatement]) -> None:
    """Refuse what does not read files, or must outlive this command."""
    if request.location is not None:
        raise OnlySparkError("a stored database needs Spark")
    if not all(one.is_query for one in statements):
        raise OnlySparkError("a statement is not a query")
    if request.follow is not None and request.follow.checkpoint is not None:
        raise OnlySparkError("checkpoints need Spark")


def _require_small(request: Request, files: Sequence[Files]) -> None:
    """Refuse files that take long to read, unless this engine was chosen."""
    if request.engine is request.engine.LOCAL:
        return
    size = sum(
        path.stat().st_size * (_PACKED if path.name.lower().endswith(".gz") else 1)
        for one in files
        for path in one.paths()
    )
    if size > request.local_megabytes << 20:
        raise OnlySparkError(
            f"the files have {size >> 20:,} MB, more than the {request.local_megabytes:,} MB "
            "of --local-limit"
        )


def _read(source: Source, files: Files, request: Request) -> tuple[FileReader, pa.Table]:
    if request.follow is not None and source in request.sources.streams:
        require_folder(source.name, source.path)
    if any(path.parent != source.path for path in files.paths()) and source.path.is_dir():
        raise OnlySparkError(f"the files of {source.name} are in several folders")
    return read_files(source.name, files, source.time, source.form, source.end)


def _declare(db: LocalDatabase, source: Source, rows: pa.Table, request: Request) -> None:
    follow = request.follow
    given = InputColumns(tuple(rows.column_names), tuple(rows.schema.types), False)
    if source in request.sources.tables:
        db.add(describe_table(source.name, given), rows)
        return
    if follow is None:
        db.add(_with_end(describe_stream(source.name, given, source.time), given, source), rows)
        return
    live = InputColumns(given.columns, given.types, is_streaming=True)
    lateness, idle = follow.lateness.get(source.name), follow.idle.get(source.name)
    relation = describe_stream(source.name, live, source.time, lateness, idle)
    db.add(_with_end(relation, live, source), rows)


def _with_end(relation: Relation, given: InputColumns, source: Source) -> Relation:
    """The stream, whose rows may have their own end times."""
    if source.end is None:
        return relation
    return replace(relation, end=(end_column(source.name, given, relation.time, source.end),))
