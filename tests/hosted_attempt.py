"""An attempt at some micro-batches, as a task of Spark makes one: `python -m tests.hosted_attempt`.

It prints what each query has in its state in the end. The argument decides in which order envelopes
come, as Spark does; PYTHONHASHSEED decides how Python orders sets.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import pandas as pd
import pyarrow as pa

from nilometer.local.database import LocalDatabase
from nilometer.local.read_source import read_source
from nilometer.operators.stage import Execution
from nilometer.spark.buckets import bucket_numbers
from nilometer.spark.emit import METRICS, EmitEnvelopes, Emitter
from nilometer.spark.exchange import Exchange
from nilometer.spark.host import Host
from nilometer.spark.pack import Pack
from nilometer.spark.send_on import SendOn
from nilometer.sql.physical.stages import PlannedStage, StageInput, cut_into_stages
from nilometer.sql.plan.changes_plan import ChangesPlan
from tests.change_data import SCHEMA, to_batch

QUERIES = (
    "SELECT X.k, X.j, Y.x FROM R0 X, R1 Y WINDOW = 300 MICROSECONDS WHERE X.k = Y.k EMIT CHANGES",
    "SELECT X.k, Y.x FROM R0 X, R0 Y, R1 Z WINDOW = 200 MICROSECONDS "
    "WHERE X.k = Y.k AND Y.j = Z.j EMIT CHANGES",
    "SELECT k, COUNT(*) AS n, SUM(x) AS t, MAX(s) AS m FROM R0 [RANGE 300 MICROSECONDS] GROUP BY k",
    "SELECT s, MEDIAN(x) AS m, ARRAY_AGG(j) AS d FROM R0 [RANGE 300 MICROSECONDS] GROUP BY s",
    "SELECT DISTINCT k, s FROM R0 [RANGE 300 MICROSECONDS]",
    "SELECT k, s FROM R0 [RANGE 300 MICROSECONDS] "
    "EXCEPT ALL SELECT k, s FROM R1 [RANGE 200 MICROSECONDS]",
    "SELECT X.s, COUNT(*) AS n FROM R0 [RANGE 300 MICROSECONDS] X, R1 [RANGE 200 MICROSECONDS] Y "
    "WHERE X.k = Y.k GROUP BY X.s",
    "SELECT k, j, s FROM R0 [PARTITION BY k ROWS 3] EMIT CHANGES",
    "SELECT k, s FROM R0 [RANGE 300 MICROSECONDS] ORDER BY x, k LIMIT 3",
)
BATCHES = 3
ROWS = 60
PIECE = 11
"""Rows of a task that sends envelopes."""


class DictState:
    """A map state of Spark, in memory."""

    def __init__(self) -> None:
        self.values: dict[tuple[str], tuple[bytes]] = {}

    def getValue(self, userKey: tuple[str]) -> tuple[bytes] | None:
        return self.values.get(userKey)

    def updateValue(self, userKey: tuple[str], value: tuple[bytes]) -> None:
        self.values[userKey] = value

    def removeKey(self, userKey: tuple[str]) -> None:
        self.values.pop(userKey, None)


def batch_of(stream: str, number: int) -> pa.RecordBatch:
    """Rows of a micro-batch: the same in every attempt, with many equal times and keys."""
    chance = random.Random(f"{stream} {number}")
    rows = [
        (
            number * 100 + at // 4,
            chance.choice((1, 2, 3, None)),
            chance.randrange(4),
            chance.random(),
            None,
            chance.choice("abcde"),
            None,
        )
        for at in range(ROWS)
    ]
    return to_batch(rows, SCHEMA)


class Attempt:
    """A query whose envelopes come in the order that a seed decides."""

    def __init__(self, sql: str, seed: str) -> None:
        db = LocalDatabase(2)
        for name in ("R0", "R1"):
            db.create_stream(name, pa.Table.from_batches([], SCHEMA), time="ts", lateness=10)
        plan = db.plan(sql)
        assert isinstance(plan, ChangesPlan), sql
        self._stages = cut_into_stages(plan, Execution.TPA).stages
        self._exchange = Exchange("attempt", by_ticket=False)
        self._states: dict[tuple[int, int], DictState] = defaultdict(DictState)
        self._chance = random.Random(f"{sql} {seed}")

    def run(self) -> None:
        for number in range(BATCHES):
            rows = {name: batch_of(name, number) for name in ("R0", "R1")}
            sent: dict[int, list[pd.DataFrame]] = defaultdict(list)
            for at, planned in enumerate(self._stages):
                frames = [*self._packed(planned, rows), *sent[at]]
                self._chance.shuffle(frames)
                for bucket in bucket_numbers(planned.stage.routing.buckets):
                    results = self._process(at, planned, bucket, frames)
                    if planned.to_stage is not None:
                        sent[planned.to_stage].append(pd.concat(results))

    def _packed(self, planned: PlannedStage, rows: dict[str, pa.RecordBatch]) -> list[pd.DataFrame]:
        """What the tasks that read streams send."""
        packed = []
        for stream, given in enumerate(planned.inputs):
            if isinstance(given, StageInput):
                continue
            pack = Pack(planned.stage, stream, self._exchange)
            whole = rows[given.relation]
            for first in range(0, len(whole), PIECE):
                piece = whole.slice(first, PIECE)
                read, selected = read_source(given.plan, given.plan.sources[given.source]).read(
                    piece, None
                )
                packed.append(pack.pack(read, selected).to_pandas())
        return packed

    def _process(
        self, at: int, planned: PlannedStage, bucket: int, frames: Sequence[pd.DataFrame]
    ) -> list[pd.DataFrame]:
        emitter: Emitter = EmitEnvelopes()
        if planned.to_stage is not None:
            target = self._stages[planned.to_stage].stage
            emitter = SendOn(target, planned.to_stream, self._exchange)
        host = Host(planned.stage, emitter, {}, self._exchange).open(self._states[at, bucket])
        own = [frame[frame["bucket"] == bucket] for frame in frames]
        batches = list(host.process(bucket, own))
        return [one[one[METRICS].isna()] for one in batches]

    def digest(self) -> str:
        """What the state is, byte by byte."""
        hashes = {
            f"{place} {name}": blake2b(content).hexdigest()
            for place, state in self._states.items()
            for (name,), (content,) in state.values.items()
        }
        return blake2b(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def main(seed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPARK_LOCAL_DIRS"] = folder
        digests: dict[str, Any] = {}
        for sql in QUERIES:
            attempt = Attempt(sql, seed)
            attempt.run()
            digests[sql] = attempt.digest()
    sys.stdout.write(json.dumps(digests))


if __name__ == "__main__":
    main(sys.argv[1])
