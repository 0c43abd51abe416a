"""Chunks of a log that grows are what its frames are, whoever has read how much of it before."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.log import segment_chunks
from nilometer.log.block_cache import BlockCache
from nilometer.log.layout import TIME, TIMESTAMP, LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.segment_reader import SegmentReader
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from tests.examples import share_of

SCHEMA = pa.schema([("n", pa.int64()), (TIME, TIMESTAMP)])


def rows_from(first: int, count: int) -> pa.RecordBatch:
    numbers = list(range(first, first + count))
    columns = [pa.array(numbers), pa.array(numbers, pa.int64()).cast(TIMESTAMP)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [one for batch in batches for one in batch.column("n").to_pylist()]


@pytest.mark.parametrize("seed", range(share_of(40)))
def test_chunks_are_the_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(segment_chunks, "ROWS", chance.choice((1, 7, 40, 10_000)))
    monkeypatch.setattr(segment_chunks, "_rows", BlockCache(chance.choice((1, 500, 1 << 20))))
    segment = chance.choice((300, 3000, 1 << 20))
    options = LogOptions(fsync=Fsync.NEVER, segment=segment, history=FOREVER)
    written = 0
    with LogWriter.open(tmp_path / "log", LogLayout(SCHEMA, TIME), options) as writer:
        for _ in range(40):
            match chance.choices(("append", "watermark", "read", "pack"), (6, 1, 4, 1))[0]:
                case "append":
                    count = chance.choice((1, 2, 9, 30))
                    writer.append(rows_from(written, count))
                    written += count
                case "watermark":
                    writer.append(rows_from(written, 0), watermark=written)
                case "pack":
                    writer.pack()
                case "read":
                    reader = LogReader.open(tmp_path / "log")
                    assert numbers(list(reader.batches())) == list(range(written))
                    low = chance.randrange(written + 2)
                    high = low + chance.randrange(30)
                    values = numbers(list(reader.batches((low, high))))
                    assert values == sorted(set(values))
                    wanted = {*range(low, high + 1)} & {*range(written)}
                    assert wanted <= set(values) <= {*range(written)}


def test_what_was_decoded_is_not_decoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    original = SegmentReader.rows

    def count(reader: SegmentReader, byte: int, header: object) -> pa.RecordBatch:
        decoded.append(byte)
        return original(reader, byte, header)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentReader, "rows", count)
    monkeypatch.setattr(segment_chunks, "ROWS", 50)
    options = LogOptions(fsync=Fsync.NEVER)
    with LogWriter.open(tmp_path / "log", LogLayout(SCHEMA, TIME), options) as writer:
        reader = LogReader.open(tmp_path / "log")
        for number in range(30):
            writer.append(rows_from(number * 10, 10))
            assert numbers(list(reader.batches())) == list(range((number + 1) * 10))
        assert len(decoded) == 30
        assert numbers(list(reader.batches((120, 130)))) == list(range(100, 150))
        assert len(decoded) == 30


def test_a_log_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    for first in (0, 1000):
        with LogWriter.open(tmp_path / "log", LogLayout(SCHEMA, TIME)) as writer:
            writer.append(rows_from(first, 5))
            values = numbers(list(LogReader.open(tmp_path / "log").batches()))
            assert values == list(range(first, first + 5))
        for file in (tmp_path / "log").iterdir():
            file.unlink()
