"""Which sensors the manager contacts: those that somebody reads, as rows and readers change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nilometer.log.position import Position
from nilometer.log.registrations import hold_readers, register, registrations
from nilometer.log.sealed import unseal
from nilometer.log.stored_json import json_bytes
from nilometer.sensors.manager.demand import Readers
from nilometer.sensors.manager.status import read_status
from tests.manager_streams import QUICK, Site, running, sensors, stream, table, values
from tests.patience import wait_for


def test_nobody_is_contacted_before_somebody_reads(site: Site) -> None:
    with running(site, stream(), table()) as manager:
        wait_for(lambda: read_status(site.folder / "status.json"))
        assert site.lines.opened == {}
        assert [one.sensors for one in manager.streams()] == [0, 0]
        site.read("S")
        wait_for(lambda: site.lines.opened == {"a0": 1})


def test_exactly_the_sensors_that_readers_need_are_contacted(site: Site) -> None:
    with running(site, table()) as manager:
        site.read("T", "one", "room == 'lab'")
        wait_for(lambda: site.lines.opened == {"a2": 1})
        site.read("T", "two", "id in (2, 3)")
        wait_for(lambda: site.lines.opened == {"a2": 1, "a3": 1})
        assert [one.number for one in manager.status("T")] == [2, 3]
        assert manager.streams()[0].readers == 2
        site.leave("T", "one")
        wait_for(lambda: manager.streams()[0].readers == 1)
        assert site.lines["a2"].closed == 0
        site.leave("T", "two")
        wait_for(lambda: site.lines["a2"].closed == site.lines["a3"].closed == 1)
        assert site.lines["a2"].paused == 0
        assert manager.status("T") == []


def test_sensors_come_go_and_change_while_a_query_runs(site: Site) -> None:
    with running(site, table()) as manager:
        site.read("T", where="room == 'hall'")
        wait_for(lambda: len(manager.status("T")) == 2)
        site.lines["a1"].say(1.0)
        wait_for(lambda: values(site, "T") == [1.0])

        site.rows["T"] += sensors((4, "hall"), (5, "attic"))
        manager.changed("T")
        wait_for(lambda: site.lines.opened == {"a1": 1, "a3": 1, "a4": 1})

        site.rows["T"] = sensors((1, "hall"), (2, "hall"), (4, "hall"), versions=(1, 12, 4))
        manager.changed("T")
        wait_for(lambda: site.lines["a3"].closed == 1)
        wait_for(lambda: site.lines.opened == {"a1": 1, "a2": 1, "a3": 1, "a4": 1})

        moved = replace(site.rows["T"][0], version=21, values={"id": 1, "room": "hall"})
        site.rows["T"][0] = replace(moved, values={"id": 1, "room": "hall", "more": 0})
        site.rows["T"][2] = replace(site.rows["T"][2], version=24, address="b4")
        manager.changed("T")
        wait_for(lambda: site.lines["b4"].opened == 1)
        assert (site.lines["a4"].closed, site.lines["a1"].opened) == (1, 1)


def test_an_update_gives_later_readings_the_new_values(site: Site) -> None:
    with running(site, table()) as manager:
        site.read("T")
        site.lines["a1"].say(1.0)
        wait_for(lambda: len(site.stored("T")) == 1)
        site.rows["T"] = sensors((1, "cellar"), versions=(9,))
        manager.changed("T")
        wait_for(lambda: len(manager.status("T")) == 1)
        site.lines["a1"].say(2.0)
        wait_for(lambda: len(site.stored("T")) == 2)
    values = [(row["room"], row["r"]["x"]) for row in site.stored("T")]
    assert values == [("hall", 1.0), ("cellar", 2.0)]
    assert site.lines["a1"].opened == 1


def test_a_sensor_that_is_needed_again_is_first_let_go(site: Site) -> None:
    line = site.lines["a0"]
    line.close_seconds = 0.3
    with running(site, stream()) as manager:
        site.read("S")
        wait_for(lambda: line.opened == 1)
        site.leave("S")
        wait_for(lambda: manager.status("S") == [])
        site.read("S")
        wait_for(lambda: line.opened == 2)
    assert line.events == ["opened", "closed", "opened", "paused"]


def test_a_reader_whose_process_died_needs_nothing(site: Site) -> None:
    site.settings = replace(QUICK, reader_seen=0)
    with running(site, stream()) as manager:
        code = (
            "import sys\nfrom nilometer.log.registrations import register\n"
            "from nilometer.log.position import Position\n"
            "register(sys.argv[1], 'r', Position(0, 0), {}, now=int(sys.argv[2]), named=True)\n"
            "input()\n"
        )
        given = [sys.executable, "-c", code, site.locate("S"), str(site.now())]
        with subprocess.Popen(given, stdin=subprocess.PIPE) as child:
            wait_for(lambda: site.lines.opened == {"a0": 1})
            assert manager.streams()[0].readers == 1
            child.kill()
        wait_for(lambda: site.lines["a0"].paused == 1)  # the reader may come back
        assert site.lines["a0"].closed == 0


def test_a_query_that_fails_and_is_started_again_loses_nothing_in_between(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader is released, and held again by whoever starts it: sensors stay open."""
    seconds = 0.0
    monkeypatch.setattr("nilometer.sensors.manager.manager.monotonic", lambda: seconds)
    site.settings = replace(QUICK, let_go_after=3.0)
    line = site.lines["a0"]
    with running(site, stream()) as manager:
        watched = manager._watched["S"]
        site.read("S")
        wait_for(lambda: line.opened == 1)
        for _ in range(3):
            site.leave("S")
            wait_for(lambda: watched.less_since is not None)
            seconds += 2.0
            hold_readers(site.locate("S"), "r", now=site.now())
            wait_for(lambda: watched.less_since is None)
            seconds += 2.0
        assert line.events == ["opened"]
        site.leave("S")
        wait_for(lambda: watched.less_since is not None)
        seconds += 3.0
        wait_for(lambda: manager.status("S") == [])
    assert line.events == ["opened", "closed"]


def test_readers_that_come_and_go_within_one_tick_of_the_disk_are_seen(site: Site) -> None:
    readers = Readers(site.locate("T"), QUICK, site.now)
    folder = site.folder / "T" / "readers"
    site.read("T", "one")
    stamp = folder.stat().st_mtime_ns
    assert [one.reader for one in readers.alive()] == ["one"]
    site.read("T", "two")
    os.utime(folder, ns=(stamp, stamp))
    assert [one.reader for one in readers.alive()] == ["one", "two"]
    old = stamp - 10**9
    os.utime(folder, ns=(old, old))
    assert len(readers.alive()) == 2
    (folder / "two.json").unlink()
    os.utime(folder, ns=(old, old))
    assert len(readers.alive()) == 2, "what has not changed for long is not read again"
    os.utime(folder, ns=(old + 1, old + 1))
    assert len(readers.alive()) == 1


def test_unnamed_readers_are_forgotten_after_a_day(site: Site) -> None:
    long_ago = site.now() - 2 * 86_400_000_000
    with running(site, stream()):
        where = site.locate("S")
        for reader, named in (("named", True), ("unnamed", False)):
            register(where, reader, Position(0, 0), {}, now=long_ago, named=named)
            path = next(Path(where, "readers").glob(f"{reader}*.json"))
            path.write_bytes(json_bytes({**json.loads(unseal(path.read_bytes())), "active": False}))
        site.read("S")
        wait_for(lambda: [one.reader for one in registrations(where)] == ["named", "r"])


def test_a_condition_that_fails_is_tried_again_and_is_nobody_elses_trouble(site: Site) -> None:
    with running(site, table()) as manager:
        site.read("T", "bad", "idd == 1")
        site.read("T", "good", "id == 2")
        wait_for(lambda: site.lines.opened == {"a2": 1})
        error = "NameError: name 'idd' is not defined"
        wait_for(lambda: manager.streams()[0].error == error)
        site.leave("T", "bad")
        wait_for(lambda: manager.streams()[0].error is None)


def test_a_catalog_that_fails_for_a_while_closes_no_sensor(site: Site) -> None:
    good = site.rows.pop("T")
    with running(site, table()) as manager:
        site.read("T", where="id < 3")
        wait_for(lambda: manager.streams()[0].error == "KeyError: 'T'")
        site.rows["T"] = good
        wait_for(lambda: len(manager.status("T")) == 2)
        site.rows["T"] = [*good, "no sensor"]  # type: ignore[list-item]
        manager.changed("T")
        wait_for(lambda: "no attribute" in (manager.streams()[0].error or ""))
        assert len(manager.status("T")) == 2
        site.rows["T"] = good
        wait_for(lambda: manager.streams()[0].error is None)
    assert site.lines.opened == {"a1": 1, "a2": 1}
    assert site.lines["a1"].closed == 0
