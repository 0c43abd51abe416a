"""Options of a log and of the manager, in WITH (…)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.errors import InputError
from nilometer.log.options import Durability, Fsync, LogOptions, WhenFull
from nilometer.model.time_forms import EpochTimes, EpochUnit
from nilometer.sensors.log_options import (
    OPTIONS,
    StreamDefaults,
    StreamOptions,
    read_stream_options,
)
from nilometer.sql.ddl.parts import StreamDef

DAY = 86_400_000_000
READS = pa.schema([("f", pa.float64())])


def test_every_option() -> None:
    options = read_stream_options(
        {
            "fsync": "Interval",
            "fsync_every": "5s",
            "memory": "1 MB",
            "segment": "2MB",
            "disk": "1.5GB",
            "when_full": "drop_oldest",
            "durability": "Disk",
            "ship_size": "4MB",
            "ship_every": "3s",
            "write_ahead": "2GB",
            "max_ahead": "10 min",
            "linger": "5ms",
            "epoch": "ms",
            "unit": " celsius ",
            "unit_reads": "f DOUBLE",
            "interval": "1s",
        },
        history=7,
    )
    log = LogOptions(
        fsync=Fsync.INTERVAL,
        fsync_every=5_000_000,
        memory=1 << 20,
        segment=2 << 20,
        disk=3 << 29,
        when_full=WhenFull.DROP_OLDEST,
        history=7,
        durability=Durability.DISK,
        ship_size=4 << 20,
        ship_every=3_000_000,
        write_ahead=2 << 30,
    )
    assert options == StreamOptions(
        log, 600_000_000, 5_000, EpochTimes(EpochUnit.MILLIS), "celsius", READS, {"interval": "1s"}
    )
    assert len(OPTIONS) == 15


@pytest.mark.parametrize(
    ("name", "text", "detail", "hint"),
    [
        ("disk", "much", "cannot read a size: 'much'", "write a number and a unit, such as '64MB'"),
        ("disk", "0", "must be greater than zero: '0'", "leave the option out instead"),
        ("fsync", "often", "unknown value: 'often'", "write one of always, interval, never"),
        ("durability", "tape", "unknown value: 'tape'", "write one of store, disk"),
        ("write_ahead", "0", "must be greater than zero: '0'", "leave the option out instead"),
        ("linger", "soon", "cannot read a duration: 'soon'", "write a number and a unit"),
        ("when_full", "x", "unknown value: 'x'", "write one of drop_oldest, drop_newest, fail"),
    ],
)
def test_an_option_that_cannot_be_read(name: str, text: str, detail: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        read_stream_options({name: text})
    assert caught.value.message == f"option {name} cannot be used"
    assert caught.value.detail == detail
    assert (caught.value.hint or "").startswith(hint)


def test_every_option_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sensors.md").read_text()
    missing = [name for name in OPTIONS if f"\n| `{name}` |" not in text]
    assert not missing


def test_what_a_statement_leaves_out_is_filled_in() -> None:
    usual = StreamDefaults(7 * DAY, {"disk": "20GB", "when_full": "drop_oldest"})
    filled = usual.fill(StreamDef((), "synthetic", {"rate": "1", "disk": "1GB"}))
    assert filled.history == 7 * DAY
    assert filled.options == {"rate": "1", "disk": "1GB", "when_full": "drop_oldest"}
    assert usual.fill(StreamDef((), "synthetic", history=5)).history == 5
    assert StreamDefaults().fill(StreamDef((), "synthetic")) == StreamDef((), "synthetic")
