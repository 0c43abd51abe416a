"""Sends results from one stage to the next, packed for the buckets of the other stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from nilometer.kernels.row_errors import RowErrors
from nilometer.operators.envelope import Header
from nilometer.operators.stage import Stage
from nilometer.spark.emit import METRICS, Sender, frame_of
from nilometer.spark.exchange import Exchange
from nilometer.spark.pack import envelopes_of, gather

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS: Final = 1 << 20


@dataclass(frozen=True)
class SendOn:
    """Packs results into envelopes for all buckets of another stage, with the sender's frontier."""

    stage: Stage
    stream: int
    exchange: Exchange

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        empty = pa.RecordBatch.from_pylist([], self.stage.operator.schemas[self.stream])
        for rows in gather(_pieces(batches), self.stage.routing.copies(self.stream)):
            yield self._send(rows, sender, RowErrors())
        # every bucket must know how far the sender has come
        yield self._send(empty, sender, sender.errors)

    def _send(self, rows: pa.RecordBatch, sender: Sender, errors: RowErrors) -> pd.DataFrame:
        admitted, punctuation = self.stage.operator.admit(self.stream, rows)
        header = Header(self.stream, punctuation, sender.now, sender.bucket, sender.frontier)
        sent = envelopes_of(self.stage, self.exchange, admitted, header, errors)
        return frame_of({METRICS: [None] * len(sent), **sent.to_pydict()})

    def metrics(self, metrics: str) -> pd.DataFrame:
        return frame_of({METRICS: [metrics], "bucket": [None], "body": [None]})


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Split rows into batches of limited length."""
    for batch in batches:
        for first in range(0, len(batch), _MOST_ROWS):
            yield batch.slice(first, _MOST_ROWS)
