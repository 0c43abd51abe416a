"""Runs statements on a server: the same commands and answers, without Spark here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from rich.console import Console

from nilometer.client import Client, Rows
from nilometer.commands.answers import in_shown_order, require_names
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.follow_on_server import follow_named, follow_select
from nilometer.commands.follow_results import Screen
from nilometer.commands.options import ExecutionName, Format
from nilometer.commands.progress import Progress
from nilometer.commands.request import Request
from nilometer.commands.server_access import Server
from nilometer.commands.statements import OneStatement
from nilometer.commands.write_answer import open_screen, show_plan, write_answer, write_plans
from nilometer.errors import GoesOnError, InputError, NoStreamError

_GOES_ON: Final = "add --follow to watch it, or keep it on the server: CREATE QUERY name AS …"
_NAME: Final = re.compile(r"\s*[^\W\d]\w*\s*;?\s*")


def run_on_server(server: Server, request: Request, progress: Progress) -> None:
    """Answer the statements in order."""
    _require_fitting(request)
    follow = request.follow
    name = request.text.strip().rstrip(";").rstrip() if _NAME.fullmatch(request.text) else None
    statements = [] if name is not None and follow is not None else request.statements()
    progress.say(f"Asking {server.url}")
    with server.open() as client, open_screen(request.output) as screen:
        if name is not None and follow is not None:
            shown = Screen(request.output, follow, screen, progress)
            progress.console.print(follow_named(server, client, name, shown).summary())
            return
        for number, statement in enumerate(statements):
            progress.say(f"Statement {number + 1} of {len(statements)}")
            if number:
                screen.print()
            _run(server, client, statement, request, screen, progress)


def explain_on_server(server: Server, request: Request, form: str, progress: Progress) -> None:
    """Show the plans of the statements."""
    _require_fitting(request)
    with server.open() as client:
        plans = [
            client.explain(one.sql, form=form, parameters=one.parameters)
            for one in request.statements()
        ]
    write_plans(plans, progress)


def _run(
    server: Server,
    client: Client,
    statement: OneStatement,
    request: Request,
    screen: Console,
    progress: Progress,
) -> None:
    output, follow = request.output, request.follow
    if statement.is_explain and output.form is Format.TABLE:
        plan = client.explain(statement.sql, parameters=statement.parameters)
        show_plan(plan, screen, progress)
        return
    if follow is not None and statement.is_query and not statement.is_explain:
        with suppress(NoStreamError):
            shown = Screen(output, follow, screen, progress)
            followed = follow_select(server, client, statement, shown)
            with progress.aside():
                progress.console.print(followed.summary())
            return
    try:
        rows = client.execute(statement.sql, parameters=statement.parameters)
    except GoesOnError as error:
        error.hint = _GOES_ON
        raise
    if not rows.table.num_columns:
        with progress.aside():
            screen.print(rows.message, soft_wrap=True)
        return
    answer = ArrowAnswer(rows.table)
    require_names(answer.columns, output.form)
    write_answer(in_shown_order(answer, statement), output, screen, progress, None)
    if (notice := notice_of_cut(rows)) is not None:
        with progress.aside():
            progress.console.print(notice, soft_wrap=True)


def notice_of_cut(rows: Rows) -> str | None:
    """A notice if the server returned only the first rows of an answer."""
    if not rows.is_cut:
        return None
    return (
        f"there are more rows: the server returns at most {len(rows):,} per answer (its setting "
        "max_rows). Ask for others with WHERE, ORDER BY and LIMIT"
    )


def _require_fitting(request: Request) -> None:
    """Refuse what a server does not support."""
    options: Mapping[str, object] = {
        "--stream": request.sources.streams,
        "--table": request.sources.tables,
        "--at": request.at,
        "--buckets": request.buckets,
        "--execution": request.execution is not ExecutionName.AUTO,
        "--checkpoint": request.follow and request.follow.checkpoint,
    }
    for option, value in options.items():
        if value:
            raise InputError(f"{option} cannot be used with a server", hint=_HINTS.get(option))


_HINTS: Final = {
    "--stream": "CREATE STREAM makes a stream on the server; files are read without --server",
    "--table": "CREATE TABLE makes a table on the server; files are read without --server",
    "--at": "--follow --answer shows how the answer of a query changes",
    "--buckets": "the server decides how work is partitioned",
    "--execution": "the server decides how queries are executed",
    "--checkpoint": "keep the query on the server: CREATE QUERY name AS …; its results are stored",
}
