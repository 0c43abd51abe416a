"""From one stage to the next: results leave the host packed for the buckets of another stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from nilometer.operators.envelope import Header
from nilometer.operators.stage import Stage, concat
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.emit import METRICS, Sender
from nilometer.spark.exchange import Exchange


@dataclass(frozen=True)
class SendOn:
    """Results as envelopes for every bucket of another stage, with the sender's frontier."""

    stage: Stage
    stream: int
    exchange: Exchange

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        operator, routing = self.stage.operator, self.stage.routing
        rows = concat(list(batches), operator.schemas[self.stream])
        admitted, punctuation = operator.admit(self.stream, rows)
        header = Header(self.stream, punctuation, sender.now, sender.bucket, sender.frontier)
        parts = routing.split(admitted, self.stream)
        bodies = self.exchange.send([(header, part) for part in parts])
        yield pd.DataFrame(
            {
                METRICS: [None] * len(parts),
                "bucket": bucket_numbers(routing.buckets),
                "body": bodies.to_pylist(),
            }
        )

    def metrics(self, metrics: str) -> pd.DataFrame:
        return pd.DataFrame({METRICS: [metrics], "bucket": [None], "body": [None]})
