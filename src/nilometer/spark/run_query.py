"""A plan over DataFrames: as a streaming query if one of them is streaming, else as a batch."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from nilometer.spark.query import carried_schema, make_query
from nilometer.spark.run_batch import run_batch
from nilometer.spark.run_stream import run_stream
from nilometer.sql.plan import JoinPlan


def run_query(plan: JoinPlan, frames: Sequence[DataFrame]) -> DataFrame:
    """The results of a plan whose sources are these frames, in order."""
    schemas = [carried_schema(plan, number, frame) for number, frame in enumerate(frames)]
    query = make_query(plan, schemas)
    streaming = any(frame.isStreaming for frame in frames)
    return run_stream(query, frames) if streaming else run_batch(query, frames)
