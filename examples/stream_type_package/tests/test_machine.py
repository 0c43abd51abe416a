"""A stream type can be tested by hand: it is three functions."""

from pathlib import Path

import pyarrow as pa
from nilometer_machine.machine import MachineStream

from nilometer.sensors.stream_type import NEW_VALUE, NO_VALUE, SensorAddress

COLUMNS = pa.schema([("load", pa.float64()), ("free_memory", pa.int64())])


def test_the_machine_is_read_once_in_every_interval(tmp_path: Path) -> None:
    (tmp_path / "loadavg").write_text("0.25 0.5 0.75 1/100 12345\n")
    (tmp_path / "meminfo").write_text("MemTotal: 2000 kB\nMemAvailable:   1000 kB\n")
    now = [0.0]
    stream = MachineStream(lambda: now[0])
    options = {"interval": "2s"}
    stream.init_stream(SensorAddress("Load", "m", str(tmp_path), options, COLUMNS, None, "load/0"))
    assert stream.read_stream()[:2] == (NEW_VALUE, {"load": 0.25, "free_memory": 1_024_000})
    assert stream.read_stream().status is NO_VALUE
    assert stream.interval == 2.0
    now[0] = 2.0
    assert stream.read_stream().status is NEW_VALUE
    stream.close_stream()
