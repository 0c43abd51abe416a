"""Envelopes and the way they take: inside Spark's rows, or beside them in files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.kernels.admit import Punctuation
from nilometer.operators.envelope import Header, seal_in_memory, unseal
from nilometer.spark.exchange import Exchange
from nilometer.spark.state import local_folder
from tests.cases import to_batch
from tests.small_disk import small_disk

HEADERS = [Header(0, Punctuation(7, 3, 1), now=5), Header(1, Punctuation(None, 0, 0))]


def test_an_empty_envelope_still_has_its_header() -> None:
    sealed = seal_in_memory([(header, to_batch([])) for header in HEADERS])
    assert [unseal(body.as_buffer()) for body in sealed] == [(header, []) for header in HEADERS]


@pytest.mark.parametrize("rows", [10, 20_000])
@pytest.mark.parametrize("by_ticket", [True, False])
def test_envelopes_arrive_as_they_were_sent(
    rows: int, by_ticket: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    exchange = Exchange("q", by_ticket)
    batch = to_batch([(t, t % 7, 0, t) for t in range(rows)])
    bodies = exchange.send([(header, batch) for header in HEADERS])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == (1 if by_ticket and rows == 20_000 else 0)
    received = exchange.receive(bodies.to_pylist())
    assert [header for header, _ in received] == HEADERS
    assert all(parts[0].equals(batch) for _, parts in received)


def test_earlier_micro_batches_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    exchange = Exchange("q", True)
    batch = to_batch([(t, t % 7, 0, t) for t in range(20_000)])
    for number in (1, 2):
        monkeypatch.setattr("nilometer.spark.exchange.batch_number", lambda n=number: n)
        exchange.send([(HEADERS[0], batch)])
        exchange.sweep()
    assert [f.name for f in local_folder("exchange", "q").iterdir()] == ["2"]


def test_envelopes_go_through_spark_where_the_disk_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.record_batch({"x": pa.array(range(100_000))})
    with small_disk(tmp_path / "disk", 2) as disk:
        monkeypatch.setenv("SPARK_LOCAL_DIRS", str(disk.folder))
        exchange = Exchange("q", True)
        disk.fill()
        bodies = exchange.send([(HEADERS[0], rows)]).to_pylist()
        assert len(bodies[0]) > rows.nbytes
        ((header, (received,)),) = exchange.receive(bodies)
        assert header == HEADERS[0]
        assert received.equals(rows)
        disk.empty()
        (ticket,) = exchange.send([(HEADERS[0], rows)]).to_pylist()
        assert len(ticket) < 1000
