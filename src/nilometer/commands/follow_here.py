"""`nilometer sql --follow` in this process: files are read as they appear in the folders."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from rich.console import Console

from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.followed import Followed
from nilometer.commands.following import make_sink, open_checkpoint, stop_signals
from nilometer.commands.options import Output
from nilometer.commands.progress import Progress
from nilometer.commands.request import Request
from nilometer.commands.sinks import FilesInFolder
from nilometer.commands.tally import Tally
from nilometer.local.database import Prepared

_LOOK_EVERY: Final = 0.1
_BEAT_EVERY: Final = 0.5
"""How often a query that depends on time receives it if nothing arrives."""


def follow_here(
    prepared: Prepared,
    followed: Sequence[Followed],
    sql: str,
    request: Request,
    progress: Progress,
    screen: Console,
) -> Tally:
    """Run a query until it is stopped or has caught up; return its summary."""
    assert request.follow is not None
    output, tally, query = request.output, Tally(), prepared.query
    headings = ArrowAnswer(query.schema.empty_table()).headings
    with open_checkpoint(request.follow) as checkpoint, stop_signals() as stops:
        sink = make_sink(headings, sql, output, request.follow, checkpoint, progress, screen)
        sink = sink or FilesInFolder(_new_folder(output))
        needs_now = any(stage.stage.needs_now for stage in query.stages)
        beaten = 0.0
        while not stops[0].is_set():
            rows = _rows(followed)
            is_due = needs_now and time.monotonic() >= beaten + _BEAT_EVERY
            if rows or is_due or not tally.batches:
                beaten = time.monotonic()
                answer = query.feed(rows, time.time_ns() // 1000)
                sink.write(ArrowAnswer(answer), tally.batches)
                tally.rate = sum(map(len, rows.values())) / max(time.monotonic() - beaten, 1e-3)
                tally.add([stage.metrics() for stage in query.stages], len(answer))
            elif request.follow.catch_up:
                break
            else:
                progress.say(f"{tally.line(time.time_ns() // 1000)} – Ctrl-C ends")
                _wait(stops[0])
    return tally


def _rows(followed: Sequence[Followed]) -> Mapping[str, pa.RecordBatch]:
    taken = {one.reader.name: one.take() for one in followed}
    return {name: rows for name, rows in taken.items() if rows is not None}


def _wait(stopped: threading.Event) -> None:
    stopped.wait(_LOOK_EVERY)


def _new_folder(output: Output) -> Path:
    assert output.path is not None
    output.path.mkdir(exist_ok=True)
    return output.path
