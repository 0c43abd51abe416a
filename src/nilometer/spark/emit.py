"""The way out: results as rows where every column is of a flat type, as envelopes elsewhere.

`transformWithStateInPandas` wants pandas. Arrow-backed columns pass through it without being
touched if their Spark type is flat; nested values would be rebuilt one by one in Python, so
they leave as Arrow bytes, and `Unpack` turns them into rows in a worker of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.row_errors import RowErrors

if TYPE_CHECKING:  # takes its time to load, and only the host needs it
    import pandas as pd

METRICS: Final = "_metrics"


@dataclass(frozen=True)
class Sender:
    """Who sends: a bucket, before which instant it is done, and the micro-batch's time."""

    bucket: int
    frontier: int
    now: int | None
    errors: RowErrors
    """Rows that were left out so far; all of them once the results are consumed."""


class Emitter(Protocol):
    """Turns the results of a bucket into what the host yields to Spark."""

    def results(
        self, batches: Iterable[pa.RecordBatch], sender: Sender
    ) -> Iterator[pd.DataFrame]: ...

    def metrics(self, metrics: str) -> pd.DataFrame: ...


@dataclass(frozen=True)
class EmitRows:
    """Results as columns c0, c1, …; the metrics as a row of their own."""

    types: tuple[pa.DataType, ...]

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        for rows in batches:
            nothing = pa.nulls(len(rows), pa.string())
            yield _frame([nothing, *flatten(rows).columns])

    def metrics(self, metrics: str) -> pd.DataFrame:
        return _frame([pa.array([metrics]), *(pa.nulls(1, flat_type(t)) for t in self.types)])


@dataclass(frozen=True)
class EmitEnvelopes:
    """Results as Arrow IPC bytes."""

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        for rows in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_batch(rows)
            yield frame_of({METRICS: [None], "body": [sink.getvalue().to_pybytes()]})

    def metrics(self, metrics: str) -> pd.DataFrame:
        return frame_of({METRICS: [metrics], "body": [None]})


class Unpack:
    """Envelopes of results in, their rows out."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for body in batch.column("body"):
                yield from map(flatten, pa.ipc.open_stream(body.as_buffer()))


def frame_of(columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """What leaves the host, as pandas, which is not loaded before."""
    import pandas as pd  # noqa: PLC0415

    return pd.DataFrame(columns)


def flat_type(kind: pa.DataType) -> pa.DataType:
    """The type under which a column leaves the host: timestamps leave as microseconds."""
    return pa.int64() if pat.is_timestamp(kind) else kind


def flatten(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Results as they leave: columns c0, c1, …, timestamps as microseconds."""
    columns = [
        column.view(pa.int64()) if pat.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])


def _frame(columns: list[pa.Array]) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    names = [METRICS, *(f"c{i}" for i in range(len(columns) - 1))]
    series = {
        name: pd.Series(pd.arrays.ArrowExtensionArray(column), copy=False)
        for name, column in zip(names, columns, strict=True)
    }
    return pd.DataFrame(series, copy=False)
