"""What following a query needs on every engine: a sink for its rows, and signals to stop."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from nilometer.commands.answers import is_changelog
from nilometer.commands.destination import GrowingFile
from nilometer.commands.options import Follow, Format, Output
from nilometer.commands.progress import Progress
from nilometer.commands.row_order import read_order
from nilometer.commands.sinks import (
    AnswerToScreen,
    InOrderOfTime,
    LinesToFile,
    LinesToScreen,
    Sink,
    TableToScreen,
)
from nilometer.commands.tables import Heading, TableView
from nilometer.errors import InputError
from nilometer.sql.questions import require_changing


def make_sink(
    headings: Sequence[Heading],
    sql: str,
    output: Output,
    follow: Follow,
    checkpoint: Path,
    progress: Progress,
    screen: Console,
) -> Sink | None:
    """The sink for micro-batches; None for Parquet, which every engine writes itself."""
    changes = is_changelog([one.name for one in headings])
    if follow.answer:
        require_changing(changes, "--answer")
        own = list(headings[:-2])
        return AnswerToScreen(screen, own, read_order(sql, own), output.limit, progress)
    sink: Sink
    if output.form is Format.PARQUET:
        return None
    if output.form is Format.TABLE:
        sink = TableToScreen(TableView(screen, headings), output.limit, progress)
    elif output.path is None:
        sink = LinesToScreen(output.form, progress)
    else:
        sink = LinesToFile(output.form, GrowingFile(output.path, checkpoint))
    return InOrderOfTime(sink) if changes else sink


@contextmanager
def open_checkpoint(follow: Follow) -> Iterator[Path]:
    """The checkpoint's folder; a temporary one for this run if none was given."""
    if follow.checkpoint is None:
        with tempfile.TemporaryDirectory(prefix="nilometer-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    try:
        follow.checkpoint.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot keep a checkpoint in {follow.checkpoint}", detail=error.strerror
        ) from None
    yield follow.checkpoint.absolute()


@contextmanager
def stop_signals() -> Iterator[list[threading.Event]]:
    """Events that are set when the first and the second request to stop arrive."""
    stops = [threading.Event(), threading.Event()]

    def take(*_: object) -> None:
        stops[1 if stops[0].is_set() else 0].set()

    before = {name: signal.signal(name, take) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stops
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
