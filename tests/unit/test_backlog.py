"""Readings that a broker had kept: which they are, and that they are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from nilometer.sensors.stream_type import NEW_VALUE, Reading
from nilometer.sensors.types.mqtt_backlog import LONGEST, MANY, Backlog
from nilometer.sensors.types.mqtt_properties import user_properties
from tests.manager_streams import ONLY, Site, stream
from tests.patience import wait_for


def taken(session: bool, arrivals: list[float]) -> int:
    """How many of the messages that come at these times were kept, as far as is judged."""
    backlog = Backlog()
    backlog.connected(100.0, session=session)
    return sum(backlog.takes(100.0 + at) for at in arrivals)


def test_a_new_session_has_no_backlog() -> None:
    assert taken(False, [0.0, 0.1]) == 0


def test_the_backlog_ends_with_a_second_that_brings_few() -> None:
    assert taken(True, [0.0, 0.4, 0.9, 1.1, 2.0]) == 3
    fast = [second + n / MANY for second in range(4) for n in range(MANY)]
    assert taken(True, [*fast, 4.1, 4.5, 5.1]) == len(fast) + 2
    assert taken(True, [0.0, 7.0]) == 1


def test_a_stream_that_is_always_fast_is_not_a_backlog_for_ever() -> None:
    steady = [n / 100 for n in range(100 * (LONGEST + 30))]
    assert taken(True, steady) == 100 * LONGEST


@pytest.mark.parametrize("cut", range(12))
def test_properties_that_are_cut_short_do_no_harm(cut: int) -> None:
    whole = bytes([0x02, 0, 0, 0, 9, 0x26, 0, 1]) + b"a" + bytes([0, 2]) + b"xy"
    assert user_properties(whole) == {"a": "xy"}
    assert user_properties(whole[:cut]) == {}


def test_a_backlog_is_counted_and_reported_where_it_gets_the_time_of_arrival(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(tmp_path)
    site.rows["S"] = [ONLY]
    with site.manager(stream()) as manager:
        site.read("S")
        kept = [Reading(NEW_VALUE, float(n), queued=True) for n in range(3)]
        queued = Reading(NEW_VALUE, 4.0, time=site.now(), queued=True)
        site.lines["a0"].say(*kept, Reading(NEW_VALUE, 3.0), queued)
        wait_for(lambda: manager.streams()[0].rows == 5)
        (status,) = manager.streams()
        assert (status.backlog, manager.status("S")[0].backlog) == (3, 3)
        words = "S received about 3 readings that had been kept while nobody listened"
        wait_for(lambda: [one for one in caplog.records if words in one.getMessage()])
    assert sum(words in one.getMessage() for one in caplog.records) == 1
