"""Shows results of a query as they arrive, from any source, until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

import pyarrow as pa
from rich.console import Console

from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.following import make_sink, open_checkpoint, stop_signals
from nilometer.commands.options import Follow, Output
from nilometer.commands.progress import Progress
from nilometer.commands.sinks import FilesInFolder, Sink
from nilometer.commands.tables import safe_text
from nilometer.commands.tally import span
from nilometer.errors import NilometerError
from nilometer.model.names import count

_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True)
class FollowStatus:
    """The state of a query and of the connection to it."""

    watermark: datetime | None = None
    phase: str | None = None
    error: str | None = None
    lost: NilometerError | None = None
    """Why there is no connection at present."""


class Batches(Protocol):
    """Results as they arrive."""

    @property
    def heard(self) -> FollowStatus:
        """The current state."""

    def take(self, seconds: float) -> pa.RecordBatch | None:
        """The next batch; None if none arrives within this time."""


@dataclass(frozen=True)
class Results:
    """A query's name, its text, and the columns of its results."""

    name: str
    sql: str
    schema: pa.Schema


@dataclass(frozen=True)
class Screen:
    """Where rows and progress are shown."""

    output: Output
    follow: Follow
    console: Console
    progress: Progress


@dataclass
class Followed:
    """How many rows of a query have arrived."""

    rows: int = 0
    began: float = field(default_factory=time.monotonic)

    def line(self, heard: FollowStatus) -> str:
        """The current state, in one line."""
        if heard.lost is not None:
            return f"{heard.lost.message}: trying again – Ctrl-C ends"
        parts = [count(self.rows, "row")]
        if heard.watermark is not None:
            behind = datetime.now(UTC) - heard.watermark
            parts.append(f"watermark {span(round(behind.total_seconds() * 1e6))} behind")
        return f"{', '.join(parts)} – Ctrl-C ends"

    def summary(self) -> str:
        """The whole run, in one line."""
        return f"rows: {self.rows:,}, seconds: {time.monotonic() - self.began:.1f}"


def follow_batches(
    results: Results,
    source: AbstractContextManager[Batches],
    first: Sequence[pa.Table],
    screen: Screen,
) -> Followed:
    """Show batches, after the initial ones, until stopped."""
    followed, phase = Followed(), None
    with (
        open_sink(results, screen) as sink,
        stop_signals() as stops,
        source as batches,
    ):
        number = 0
        for table in first:
            sink.write(ArrowAnswer(table), number)
            number += 1
        while not stops[0].is_set():
            batch = batches.take(_LOOK_SECONDS)
            if batch is not None:
                sink.write(ArrowAnswer(pa.Table.from_batches([batch])), number)
                number, followed.rows = number + 1, followed.rows + len(batch)
            heard = batches.heard
            if heard.phase != phase:
                phase = heard.phase
                _tell_phase(results.name, heard, screen.progress)
            screen.progress.say(followed.line(heard))
    return followed


@contextmanager
def open_sink(results: Results, screen: Screen) -> Iterator[Sink]:
    """The sink for the rows of batches."""
    headings = ArrowAnswer(results.schema.empty_table()).headings
    output, follow = screen.output, screen.follow
    with open_checkpoint(follow) as checkpoint:
        sink = make_sink(
            headings, results.sql, output, follow, checkpoint, screen.progress, screen.console
        )
        if sink is None:
            assert output.path is not None
            output.path.mkdir(exist_ok=True)
            sink = FilesInFolder(output.path)
        yield sink


def _tell_phase(name: str, heard: FollowStatus, progress: Progress) -> None:
    if heard.phase in (None, "running"):
        return
    why = f": {heard.error}" if heard.error else ""
    with progress.aside():
        text = safe_text(f"query {name} is {heard.phase}{why}")
        progress.console.print(text, soft_wrap=True)
