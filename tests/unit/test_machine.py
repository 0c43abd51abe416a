"""Nothing of Linux alone is needed: what other systems lack is done without."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.log.layout import LogLayout
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.spark import machine


def test_cores_where_the_system_does_not_tell_those_of_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert machine.cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5})
    assert machine.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert machine.cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.cores() == 1


def test_cores_as_python_tells_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: 5, raising=False)
    assert machine.cores() == 5


def test_memory_where_the_system_does_not_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.memory() > 1 << 28

    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert machine.memory() == 8 << 30
    monkeypatch.setattr(os, "sysconf", lambda _: -1 if _ == "SC_PHYS_PAGES" else 4096)
    assert machine.memory() == 8 << 30
    monkeypatch.delattr(os, "sysconf")
    assert machine.memory() == 8 << 30


@pytest.mark.parametrize("full", [False, True], ids=["fsync", "macOS"])
def test_a_log_is_forced_to_disk_without_fdatasync(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    own = os.fsync
    monkeypatch.delattr(os, "fdatasync")
    if full:
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", lambda file, what: forced.append("full"))
    else:
        monkeypatch.setattr(os, "fsync", lambda file: (forced.append("fsync"), own(file)))
    rows = pa.record_batch({"x": pa.array([1, 2])})
    with LogWriter.open(tmp_path / "log", LogLayout(rows.schema, None)) as log:
        before = len(forced)
        log.append(rows)
        assert len(forced) > before
    reader = LogReader.open(tmp_path / "log")
    assert [frame.rows for frame in reader.read(reader.start)] == [rows]
