"""Writes answers and plans to the screen, or to files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from nilometer.commands.answers import Answer, header, is_changelog
from nilometer.commands.destination import open_output
from nilometer.commands.options import Format, Moment, Output
from nilometer.commands.progress import Progress
from nilometer.commands.tables import TableView, count_line
from nilometer.errors import InputError


@contextmanager
def open_screen(output: Output) -> Iterator[Console]:
    """The console for tables and plans: the standard output, or a file."""
    if output.form is not Format.TABLE or output.path is None:
        yield Console(highlight=False, markup=False, emoji=False)
        return
    with open_output(output.path) as out:
        text = io.TextIOWrapper(out, encoding="utf-8")
        yield Console(file=text, highlight=False, markup=False, emoji=False)
        text.detach()


def show_plan(plan: str, screen: Console, progress: Progress) -> None:
    """Write a plan to the screen."""
    with progress.aside():
        screen.out(plan.rstrip(), highlight=False)


def write_plans(plans: list[str], progress: Progress) -> None:
    """Write plans to the standard output."""
    with progress.aside(), open_output(None) as out:
        out.write("\n\n".join(plan.rstrip() for plan in plans).encode() + b"\n")


def write_answer(
    answer: Answer, output: Output, screen: Console, progress: Progress, at: Moment | None
) -> None:
    """Write the whole answer of a batch run."""
    if output.form is Format.TABLE:
        taken = answer.take_rows(output.limit)
        with progress.aside():
            TableView(screen, answer.headings).show(taken.rows)
            what = "change" if is_changelog(answer.columns) else "row"
            counted = count_line(len(taken.rows), taken.total, what)
            summary = counted + ("" if taken.total else _when_empty(at))
            screen.print(summary, style="dim", soft_wrap=True)
    elif output.form is Format.PARQUET:
        _write_parquet(answer, output)
    else:
        first = header(answer.columns, output.form)
        with (
            answer.lines(output.form) as lines,
            progress.aside(),
            open_output(output.path) as out,
        ):
            out.write(first)
            lines.copy_to(out)


def _when_empty(at: Moment | None) -> str:
    """The message for an answer without rows."""
    if at is None or at.instant is not None:
        return ""
    return ": at the end all time windows are empty"


def _write_parquet(answer: Answer, output: Output) -> None:
    assert output.path is not None
    if output.path.exists():
        raise InputError(f"{output.path} already exists", hint="name a folder that is new")
    answer.write_parquet(output.path)
