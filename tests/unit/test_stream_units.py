"""Pre-processing units: what readings become before they are stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import InputError
from nilometer.log.layout import TIMESTAMP
from nilometer.log.reader import LogReader
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.sensor_keys import SensorKeys
from nilometer.sensors.stream_type import END, NEW_VALUE, Reading, SensorAddress
from tests.manager_streams import Site, sensors, stream, table, values
from tests.patience import LONG, wait_for


class Units(dict[str, Any]):
    """Units by name, some of them later."""

    def find(self, name: str) -> Callable[..., Any]:
        if name not in self:
            raise InputError(f"there is no unit {name}")
        return self[name]  # type: ignore[no-any-return]


def read_through(site: Site, unit: Any, *words: Any, rows: int, **given: Any) -> list[Any]:
    """What is stored of a stream's readings, once there are so many rows."""
    declared = stream(options={"unit": "u"}, **given)
    with site.manager(declared, find_unit=Units(u=unit).find):
        site.read("S")
        site.lines["a0"].say(*words)
        wait_for(lambda: len(site.stored("S")) >= rows)
    return site.stored("S")


def numbers(rows: list[Any]) -> list[Any]:
    return [row["x"] for row in rows]


def test_one_reading_becomes_another(site: Site) -> None:
    stored = read_through(site, lambda one: {"x": one["f"] * 2}, {"f": 1}, {"f": 2}, rows=2)
    assert numbers(stored) == [2.0, 4.0]


def test_readings_are_dropped_and_multiplied_in_order(site: Site) -> None:
    def copies(one: int) -> list[float] | None:
        return [one + at / 10 for at in range(one)] if one % 2 else None

    stored = read_through(site, copies, *range(8), rows=16)
    assert numbers(stored) == [n + at / 10 for n in (1, 3, 5, 7) for at in range(n)]


def test_a_generator_is_a_list(site: Site) -> None:
    def twice(one: float) -> Iterator[tuple[float]]:
        yield (one,)
        yield (one,)

    assert numbers(read_through(site, twice, 1.0, 2.0, rows=4)) == [1.0, 1.0, 2.0, 2.0]


class Spectra:
    """Adds up three events at a time; of the last ones, what there is."""

    made: list[SensorAddress]

    def __init__(self, sensor: SensorAddress) -> None:
        type(self).made.append(sensor)
        self.events: list[float] = []

    def __call__(self, one: float) -> tuple[float] | None:
        self.events.append(one)
        if len(self.events) < 3:
            return None
        total, self.events = sum(self.events), []
        return (total,)

    def finish(self) -> list[tuple[float]]:
        return [(sum(self.events),)] if self.events else []


def test_a_class_keeps_something_for_every_sensor(site: Site) -> None:
    Spectra.made = []
    declared = table(options={"unit": "u"})
    site.rows["T"] = sensors((1, "hall"), (2, "lab"))
    with site.manager(declared, find_unit=Units(u=Spectra).find):
        site.read("T")
        for one in range(1, 8):
            site.lines["a1"].say(float(one))
            site.lines["a2"].say(float(one * 100))
        wait_for(lambda: len(site.stored("T")) == 4)
        site.leave("T")
        wait_for(lambda: len(site.stored("T")) == 6)  # what finish gives, when it is closed
    rows = [(row["id"], row["r"]["x"]) for row in site.stored("T")]
    assert [x for number, x in rows if number == 1] == [6.0, 15.0, 7.0]
    assert [x for number, x in rows if number == 2] == [600.0, 1500.0, 700.0]
    assert sorted((one.sensor, one.address) for one in Spectra.made) == [("1", "a1"), ("2", "a2")]


def test_what_is_left_is_stored_when_a_stream_ends(site: Site) -> None:
    Spectra.made = []
    stored = read_through(site, Spectra, 1.0, 2.0, 3.0, 4.0, END, rows=2)
    assert numbers(stored) == [6.0, 4.0]


def test_what_raises_is_a_dead_letter_and_the_sensor_goes_on(site: Site) -> None:
    def picky(one: float) -> float:
        if one < 0:
            raise ValueError(f"{one} is negative")
        return one

    stored = read_through(site, picky, 1.0, -2.0, 3.0, rows=2)
    assert numbers(stored) == [1.0, 3.0]
    letters = [(one["reason"], one["payload"]) for one in site.letters("S")]
    assert letters == [("unit u: ValueError: -2.0 is negative", "-2.0")]
    assert site.lines["a0"].opened == 1


def test_what_comes_out_must_fit_the_columns(site: Site) -> None:
    stored = read_through(site, lambda one: "warm" if one > 1 else one, 1.0, 2.0, 0.5, rows=2)
    assert numbers(stored) == [1.0, 0.5]
    assert len(site.letters("S")) == 1


def test_a_record_batch_goes_through_as_it_is(site: Site) -> None:
    batch = pa.record_batch({"f": [1.0, 2.0, 3.0], "u": ["a", "b", "c"]})

    def warmer(one: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"x": pa.compute.multiply(one.column("f"), 10)})

    assert numbers(read_through(site, warmer, batch, rows=3)) == [10.0, 20.0, 30.0]


def test_times_are_those_of_what_comes_out_or_of_the_reading(site: Site) -> None:
    timed = pa.schema([("x", pa.float64()), ("at", TIMESTAMP)])

    def stamped(one: float) -> dict[str, Any]:
        return {"x": one, "at": one}

    stored = read_through(site, stamped, 5.0, 7.0, rows=2, readings=timed, time="at")
    assert [row["at"].timestamp() for row in stored] == [5.0, 7.0]


def test_the_readings_own_time_is_kept(site: Site) -> None:
    at = [Reading(NEW_VALUE, 1.0, 5_000_000), Reading(NEW_VALUE, 2.0, 6_000_000)]
    stored = read_through(site, lambda one: [one, one + 0.5], *at, rows=4)
    assert [row["_time"].timestamp() for row in stored] == [5.0, 5.0, 6.0, 6.0]


def test_a_reading_is_acknowledged_once_what_came_of_it_is_stored(site: Site) -> None:
    seen: list[list[float]] = []

    def note() -> None:
        seen.append(values(site))

    words = [Reading(NEW_VALUE, float(one), None, b"k%d" % one, note) for one in range(4)]
    unit = lambda one: None if one == 2.0 else [one, one]  # noqa: E731
    read_through(site, unit, *words, rows=6)
    assert len(seen) == 4
    assert all(stamps.count(float(at)) == 2 for at, stamps in enumerate(seen) if at != 2)


def test_keys_are_kept_also_of_readings_that_give_nothing(site: Site) -> None:
    words = [Reading(NEW_VALUE, float(one), None, b"k%d" % one) for one in range(3)]
    read_through(site, lambda one: None if one < 2 else one, *words, rows=1)
    log = LogReader.open(site.locate("S"))
    assert log.end.row == 1
    with site.manager(stream(options={"unit": "u"}), find_unit=Units(u=float).find) as manager:
        keys: SensorKeys = manager._watched["S"].stream.store.keys
        assert keys.delivered(0) == {b"k0", b"k1", b"k2"}


def test_a_stream_type_may_be_told_what_the_unit_reads(site: Site) -> None:
    options = {"unit": "u", "unit_reads": "f DOUBLE, room STRING"}
    with site.manager(stream(options=options), find_unit=Units(u=float).find):
        site.read("S")
        wait_for(lambda: site.lines["a0"].addresses)
    address = site.lines["a0"].addresses[0]
    assert address.columns == pa.schema([("f", pa.float64()), ("room", pa.string())])


def test_a_unit_that_is_not_there_yet(site: Site) -> None:
    units = Units()
    with site.manager(stream(options={"unit": "u"}), find_unit=units.find) as manager:
        site.read("S")
        site.lines["a0"].say(1.0)
        status = wait_for(lambda: [one for one in manager.status("S") if one.errors > 1])[0]
        assert status.last_error == "there is no unit u"
        assert manager.streams()[0].error == "there is no unit u"
        assert site.lines["a0"].opened == 0
        units["u"] = lambda one: one + 1
        wait_for(lambda: values(site) == [2.0])
        assert manager.streams()[0].error is None


def test_a_slow_unit_holds_up_its_own_stream_alone(site: Site) -> None:
    stuck = threading.Event()
    slow, quick = stream(options={"unit": "u"}), stream(name="Q")
    site.rows["Q"] = [replace(site.rows["S"][0], address="q0")]

    def wait(one: float) -> float:
        stuck.wait(LONG)
        return one

    with site.manager(slow, quick, find_unit=Units(u=wait).find) as manager:
        for name in ("S", "Q"):
            site.read(name)
        site.lines["a0"].say(1.0)
        wait_for(lambda: site.lines["a0"].reads)
        site.lines["q0"].say(*[float(one) for one in range(5)])
        wait_for(lambda: len(site.stored("Q")) == 5)
        assert manager.status("S")[0].readings == 0
        stuck.set()
        wait_for(lambda: values(site) == [1.0])


@pytest.mark.parametrize("bad", [lambda: 1, lambda a, b: 1])
def test_a_unit_of_a_wrong_shape_refuses_every_reading(site: Site, bad: Any) -> None:
    with site.manager(stream(options={"unit": "u"}), find_unit=Units(u=bad).find) as manager:
        site.read("S")
        site.lines["a0"].say(1.0, 2.0)
        wait_for(lambda: len(site.letters("S")) == 2)
        _is_connected(manager)


def _is_connected(manager: StreamManager) -> None:
    assert manager.status("S")[0].state == "connected"
