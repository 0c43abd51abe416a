"""Emits results: as rows if every column is of a flat type, otherwise as envelopes.

`transformWithStateInPandas` requires pandas. Arrow-backed columns pass through it unchanged if
their Spark type is flat; nested values would be rebuilt one by one in Python, so they are emitted
as Arrow bytes, and `Unpack` turns them into rows in a worker of its own.

Results for a log leave in one of two ways. If nothing is left for Spark to compute, the host writes
them itself (`EmitParts`), and a sink gets only the names of parts; otherwise they leave as
envelopes to `foreachBatch` (`WriteBatches`), because a sink would see the rows that Spark has
computed but not the metrics beside them, and Spark would run the host once for each of the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.row_errors import RowErrors

if TYPE_CHECKING:  # slow to load, and only the host needs it
    import pandas as pd

METRICS: Final = "_metrics"

_LEFT_OUT: Final = b"errors"
REPORTS_LEFT_OUT: Final = f"startswith(body, X'{_LEFT_OUT.hex()}')"
"""Holds for bodies that report rows left out: Arrow bytes begin differently."""


@dataclass(frozen=True)
class Sender:
    """The sender: a bucket, the time before which it is done, and the micro-batch's time."""

    bucket: int
    frontier: int
    now: int | None
    errors: RowErrors
    """Rows left out so far; complete once the results are consumed."""


class Emitter(Protocol):
    """Converts the results of a bucket to what the host yields to Spark."""

    def results(
        self, batches: Iterable[pa.RecordBatch], sender: Sender
    ) -> Iterator[pd.DataFrame]: ...

    def metrics(self, metrics: str) -> pd.DataFrame: ...


@dataclass(frozen=True)
class EmitRows:
    """Emits results as columns c0, c1, …, and the metrics as a row of their own."""

    types: tuple[pa.DataType, ...]

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        for rows in batches:
            nothing = pa.nulls(len(rows), pa.string())
            yield _frame([nothing, *flatten(rows).columns])

    def metrics(self, metrics: str) -> pd.DataFrame:
        return _frame([pa.array([metrics]), *(pa.nulls(1, flat_type(t)) for t in self.types)])


@dataclass(frozen=True)
class EmitEnvelopes:
    """Emits results as Arrow IPC bytes, followed by a report of rows left out, if there are any."""

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        for rows in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_batch(rows)
            yield frame_of({METRICS: [None], "body": [sink.getvalue().to_pybytes()]})
        if sender.errors.count:
            report = json.dumps(sender.errors.to_json()).encode()
            yield frame_of({METRICS: [None], "body": [_LEFT_OUT + report]})

    def metrics(self, metrics: str) -> pd.DataFrame:
        return frame_of({METRICS: [metrics], "body": [None]})


def read_left_out(body: bytes) -> RowErrors:
    """The rows left out, of a body that reports them."""
    return RowErrors.from_json(json.loads(body[len(_LEFT_OUT) :]))


class Unpack:
    """Unpacks envelopes of results into their rows."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for body in batch.column("body"):
                yield from map(flatten, pa.ipc.open_stream(body.as_buffer()))


def frame_of(columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """The host's output as pandas, which is only loaded here."""
    import pandas as pd  # noqa: PLC0415

    return pd.DataFrame(columns)


def flat_type(kind: pa.DataType) -> pa.DataType:
    """The type with which a column leaves the host: microseconds for timestamps."""
    return pa.int64() if pat.is_timestamp(kind) else kind


def flatten(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Results as they are emitted: columns c0, c1, …, timestamps as microseconds."""
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
