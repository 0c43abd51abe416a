"""Which Sparks are supported, and readers that an older Spark does not tell where it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas import functions
from pyspark.sql.types import LongType

import nilometer as nm
from nilometer.errors import InputError, SessionError
from nilometer.spark import versions
from nilometer.spark.register_source import register_source
from nilometer.spark.supported import require_supported
from nilometer.spark.versions import Offset, RememberingReader

MOST = 3


@pytest.mark.parametrize("version", ["4.0.0", "4.1.4", "4.2.0-SNAPSHOT", "4.3.0"])
def test_supported_versions(version: str) -> None:
    require_supported(version)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("3.5.7", "Spark 3.5.7 is too old"),
        ("4.4.0-SNAPSHOT", "Spark 4.4.0-SNAPSHOT is newer than this Nilometer supports"),
        ("5.0.0", "Spark 5.0.0 is newer than this Nilometer supports"),
    ],
)
def test_other_versions_are_refused_wherever_a_session_comes_in(version: str, message: str) -> None:
    session: Any = SimpleNamespace(version=version)
    frame: Any = SimpleNamespace(isStreaming=False, sparkSession=session)
    for come_in in (
        lambda: nm.connect(session),
        lambda: nm.window_join({"A": frame}, windows="1s"),
        lambda: register_source(session, object),  # type: ignore[arg-type]
    ):
        with pytest.raises(SessionError) as refused:
            come_in()
        assert refused.value.message == message
        assert refused.value.detail == "Spark 4.0 to 4.3 are supported"
        assert refused.value.hint == (
            "pip install 'pyspark>=4.0,<4.4', or connect to a server of such a version"
        )


def test_functions_where_spark_cannot_call_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(functions, "arrow_udf")
    with pytest.raises(
        InputError, match="functions in Python need Spark 4.1 or later, and this is"
    ):
        versions.arrow_function(lambda a: a, LongType())


@dataclass
class Source:
    """Rows that come, and how far a reader has said that it needs none before."""

    rows: int = 0
    released: int = 0


class Reader(RememberingReader):
    """Reads a source from where it ends at first."""

    max_rows = MOST

    def __init__(self, source: Source) -> None:
        self._source = source

    def begin(self) -> Offset:
        return {"row": 0}

    def available(self) -> Offset:
        return {"row": self._source.rows}

    def hold(self, start: Offset) -> None:
        pass

    def advance(self, start: Offset, last: Offset, max_rows: int | None) -> Offset:
        self._source.released = max(self._source.released, start["row"])
        return {"row": min(last["row"], start["row"] + (max_rows or 1 << 60))}

    def split(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [InputPartition(range(start["row"], end["row"]))]

    def read(self, partition: InputPartition) -> Any:
        return iter(partition.value)


class KilledError(Exception):
    """The driver's end."""


@dataclass
class Spark:
    """Spark before 4.2 as it runs a query: what it keeps, and what it asks a reader."""

    source: Source
    offsets: list[Offset] = field(default_factory=list)
    committed: int = 0
    written: dict[int, list[int]] = field(default_factory=dict)

    def run(
        self, batches: int, now: bool, seen_first: bool, kill_at: int | None, grow: int
    ) -> None:
        """Run a query anew from its checkpoint; a crash may come at any step of it."""
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1
            if steps == kill_at:
                raise KilledError

        reader = Reader(self.source)
        fetched: Offset | None = None
        if now and not seen_first:
            fetched = reader.latestOffset()
        if self.offsets:
            reader.partitions(self.offsets[-1], self.offsets[-1])
        if now and seen_first:
            fetched = reader.latestOffset()
        while self.committed < len(self.offsets) or batches:
            if self.committed == len(self.offsets):
                batches -= 1
                end = fetched or reader.latestOffset()
                if now:
                    reader.latestOffset()  # only to report it
                if self.offsets and end == self.offsets[-1]:
                    self.source.rows += grow
                    continue
                self.offsets.append(end)
                step()
            self._do(reader, step)
            self.source.rows += grow

    def _do(self, reader: Reader, step: Any) -> None:
        number = self.committed
        start = self.offsets[number - 1] if number else reader.initialOffset()
        assert self.source.released <= start["row"], "what is still needed was released"
        [part] = reader.partitions(start, self.offsets[number])
        step()
        self.written[number] = list(reader.read(part))
        step()
        self.committed += 1
        step()


RUN = st.tuples(
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(1, 12),
    st.integers(0, 7),
)


@given(st.integers(0, 9), st.lists(RUN, min_size=1, max_size=6))
def test_a_reader_that_is_not_told_where_it_is_reads_each_row_once(
    rows: int, runs: list[tuple[int, bool, bool, int | None, int]]
) -> None:
    spark = Spark(Source(rows))
    for batches, now, seen_first, kill_at, grow in runs:
        there = spark.source.rows
        try:
            spark.run(batches, now, seen_first, kill_at, grow)
        except KilledError:
            continue
        done = [row for number in range(spark.committed) for row in spark.written[number]]
        assert done == list(range(len(done)))
        if now:
            assert len(done) >= there, "availableNow reads all that was there"


def test_only_the_first_micro_batch_has_no_most_rows() -> None:
    spark = Spark(Source(10))
    spark.run(batches=1, now=False, seen_first=True, kill_at=None, grow=10)
    assert len(spark.written[0]) == 10
    spark.run(batches=4, now=False, seen_first=True, kill_at=None, grow=10)
    assert [len(spark.written[number]) for number in range(1, 5)] == [10, MOST, MOST, MOST]
