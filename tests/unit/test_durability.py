"""The option of a stream that says where rows are once they are acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from pyarrow import fs

from nilometer.database.home import Home
from nilometer.database.running import RunningQueries
from nilometer.database.statements import run_statement
from nilometer.errors import InputError, SqlError
from nilometer.log.dead_letters import dead_letter_log
from nilometer.log.layout import TIME, TIMESTAMP
from nilometer.log.location import inside
from nilometer.log.reader import LogReader
from nilometer.log.segment_format import segment_name
from nilometer.log.waiting_rows import waiting_in
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.find_types import stream_class
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.stream_type import NEW_VALUE, Reading
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.statements import read_one
from nilometer.upkeep.check import check_database
from nilometer.upkeep.move_logs import move_logs
from tests.file_systems import register_file_system
from tests.manager_streams import ONLY, QUICK, Site, sensors, stream, table, values
from tests.patience import wait_for
from tests.unit.fallible_store import FallibleStore

DISK = {"durability": "disk", "ship_every": "1h", "linger": "1ms"}


class RemoteSite(Site):
    """A site whose logs are in an object store, with a folder for write-aheads."""

    def locate(self, name: str) -> str:
        return f"durable://site/logs/{name}"

    def ahead_of(self, name: str) -> Path:
        return self.folder / "write-ahead" / name

    @contextmanager
    def manager(self, *declarations: Declaration, **options: Any) -> Iterator[StreamManager]:
        with super().manager(*declarations, **{"ahead_of": self.ahead_of, **options}) as made:
            yield made


@pytest.fixture
def store() -> FallibleStore:
    store = FallibleStore()
    register_file_system("durable", fs.PyFileSystem(store))
    return store


@pytest.fixture
def site(tmp_path: Path, store: FallibleStore) -> RemoteSite:
    made = RemoteSite(tmp_path, replace(QUICK, append_rows=10))
    made.rows = {"S": [ONLY], "T": sensors((1, "a"), (2, "b"))}
    return made


def segments(store: FallibleStore, name: str = "S") -> int:
    return sum(f"/{name}/" in one and one.endswith(".seg") for one in store.objects)


def keyed(number: int, acknowledged: list[int]) -> Reading:
    """A reading with a key, which notes that it is acknowledged."""
    stored: Callable[[], None] = lambda: acknowledged.append(number)  # noqa: E731
    return Reading(NEW_VALUE, float(number), key=b"%d" % number, stored=stored)


def test_readings_are_acknowledged_before_they_are_in_the_store(
    site: RemoteSite, store: FallibleStore
) -> None:
    acknowledged: list[int] = []
    with site.manager(stream(options=DISK)) as manager:
        site.read("S")
        site.lines["a0"].say(*(keyed(one, acknowledged) for one in range(500)))
        wait_for(lambda: len(acknowledged) == 500)
        status = manager.streams()[0]
        assert (status.durability, status.unshipped, status.rows) == ("disk", 500, 0)
        assert status.unshipped_since is not None
        assert manager.status("S")[0].readings == 500
        assert values(site) == []
    assert values(site) == list(range(500))
    assert segments(store) <= 3
    with site.manager(stream(options=DISK)) as manager:
        wait_for(lambda: manager.status("S"))
        assert manager.status("S")[0].readings == 500
        assert manager.streams()[0].rows == 500
        assert len(site.lines["a0"].addresses[-1].delivered) == 500


def test_without_the_option_every_append_is_an_object(
    site: RemoteSite, store: FallibleStore
) -> None:
    acknowledged: list[int] = []
    with site.manager(stream(options={"linger": "0s"})) as manager:
        site.read("S")
        site.lines["a0"].say(*(keyed(one, acknowledged) for one in range(100)))
        wait_for(lambda: len(acknowledged) == 100)
        assert values(site) == list(range(100))
        assert manager.streams()[0].durability == "store"
    assert segments(store) >= 10


def test_a_store_that_is_away_holds_nothing_up(site: RemoteSite, store: FallibleStore) -> None:
    acknowledged: list[int] = []
    options = {**DISK, "ship_every": "50ms"}
    with site.manager(stream(options=options)) as manager:
        site.read("S")
        site.lines["a0"].say(keyed(0, acknowledged))
        wait_for(lambda: values(site) == [0])
        store.is_away = True
        site.lines["a0"].say(*(keyed(one, acknowledged) for one in range(1, 50)))
        wait_for(lambda: len(acknowledged) == 50)
        wait_for(lambda: "rows wait for the object store" in str(manager.streams()[0].error))
        assert manager.streams()[0].unshipped == 49
        store.is_away = False
        wait_for(lambda: values(site) == list(range(50)))
        wait_for(lambda: manager.streams()[0].error is None)
        assert manager.streams()[0].unshipped == 0


def test_a_full_write_ahead_makes_sensors_wait(site: RemoteSite, store: FallibleStore) -> None:
    acknowledged: list[int] = []
    options = {**DISK, "ship_every": "50ms", "write_ahead": "40KB", "linger": "0s"}
    with site.manager(stream(options=options)) as manager:
        site.read("S")
        site.lines["a0"].say(keyed(0, acknowledged))
        wait_for(lambda: values(site) == [0])
        store.is_away = True
        site.lines["a0"].say(*(keyed(one, acknowledged) for one in range(1, 3000)))
        wait_for(lambda: manager.streams()[0].full)
        assert "the write-ahead is full" in str(manager.streams()[0].error)
        assert len(acknowledged) < 3000
        store.is_away = False
        wait_for(lambda: len(acknowledged) == 3000)
    assert values(site) == list(range(3000))


def test_dead_letters_and_static_values_are_there_too(
    site: RemoteSite, store: FallibleStore
) -> None:
    with site.manager(table(options=DISK)) as manager:
        site.read("T")
        for name in ("a1", "a2"):
            site.lines[name].say((1.0,), "no number", (2.0,))
        wait_for(lambda: manager.streams()[0].unshipped == 4)
        assert manager.streams()[0].dead_letters == 2
        assert site.stored(dead_letter_log("T")) == []
    assert sorted(values(site, "T")) == [1.0, 1.0, 2.0, 2.0]
    assert len(site.stored(dead_letter_log("T"))) == 2


def test_what_waits_is_there_after_a_restart(site: RemoteSite, store: FallibleStore) -> None:
    acknowledged: list[int] = []
    with site.manager(stream(options=DISK)):
        site.read("S")
        site.lines["a0"].say(*(keyed(one, acknowledged) for one in range(20)))
        wait_for(lambda: len(acknowledged) == 20)
        store.is_away = True
    store.is_away = False
    assert waiting_in(site.ahead_of("S"))[0] == 20
    with site.manager(stream(options=DISK)) as manager:
        wait_for(lambda: manager.status("S"))
        assert manager.status("S")[0].readings == 20
        assert site.lines["a0"].addresses[-1].delivered == {b"%d" % one for one in range(20)}
        assert values(site) == list(range(20))
        site.lines["a0"].say(*(keyed(one, acknowledged) for one in range(20, 30)))
        wait_for(lambda: len(acknowledged) == 30)
        store.is_away = True
    store.is_away = False
    assert values(site) == list(range(20))
    with site.manager(stream(options={"durability": "store"})) as manager:
        assert values(site) == list(range(30))
        assert manager.streams()[0].durability == "store"
        assert not site.ahead_of("S").exists()


def test_two_servers_read_a_source_with_positions_once(
    site: RemoteSite, store: FallibleStore, tmp_path: Path
) -> None:
    """The second one takes over what waits on the disk of the first one, from the source."""
    options = {**DISK, "rate": "300", "count": "200", "seed": "7"}
    other = RemoteSite(tmp_path / "other", site.settings)
    other.rows = site.rows
    other.folder.mkdir()
    declared = stream("synthetic", options=options)

    def read(here: RemoteSite, rows: int, *, is_killed: bool) -> None:
        with here.manager(declared, find_type=stream_class) as manager:
            here.read("S")
            status = manager.streams
            wait_for(lambda: status()[0].rows + status()[0].unshipped >= rows)
            store.is_away = is_killed
        store.is_away = False

    read(site, 30, is_killed=True)
    assert waiting_in(site.ahead_of("S"))[0] >= 30
    read(other, 100, is_killed=True)
    read(other, 120, is_killed=False)
    assert waiting_in(site.ahead_of("S"))[0] >= 30
    read(site, 200, is_killed=False)
    read(other, 200, is_killed=False)
    stored = values(site)
    alone = RemoteSite(tmp_path / "alone", site.settings)
    alone.rows = site.rows
    alone.folder.mkdir()
    store.objects.clear()
    read(alone, 200, is_killed=False)
    assert stored == values(alone)
    assert len(stored) == 200


def run(home: Home, sql: str) -> Any:
    read = read_one(sql)
    assert not isinstance(read, Statement)
    return run_statement(read, home, RunningQueries(home, _no_plans, 1))


def _no_plans(*_: object) -> NoReturn:
    raise AssertionError("no query is planned here")


def shown(home: Home) -> dict[str, str]:
    rows = run(home, "SHOW STREAMS").rows
    return dict(zip(rows["name"].to_pylist(), rows["durability"].to_pylist(), strict=True))


def test_statements(tmp_path: Path, store: FallibleStore) -> None:
    threads = threading.active_count()
    home = Home(tmp_path / "db", None, "durable://site/logs", lambda rows, where: set())
    run(home, "CREATE STREAM A (v INT) FROM synthetic WITH (durability = 'disk')")
    run(home, "CREATE STREAM B (v INT) FROM synthetic")
    run(home, "CREATE STREAM C (v INT) FROM synthetic WITH (durability = 'store')")
    assert shown(home) == {"A": "disk", "B": "store", "C": "store"}
    run(home, "ALTER STREAM A SET (durability = 'store')")
    run(home, "ALTER STREAM B SET (durability = 'disk', ship_every = '1s')")
    assert shown(home) == {"A": "store", "B": "disk", "C": "store"}
    assert not home.ahead_of("A").exists()
    assert home.ahead_of("B").is_dir()
    run(home, "DROP STREAM B")
    assert not home.ahead_of("B").exists()
    home.close()
    wait_for(lambda: threading.active_count() <= threads)


def test_a_folder_is_no_object_store(tmp_path: Path) -> None:
    home = Home(tmp_path / "db", None, None, lambda rows, where: set())
    with pytest.raises(InputError, match="A cannot have durability 'store'"):
        run(home, "CREATE STREAM A (v INT) FROM synthetic WITH (durability = 'store')")
    run(home, "CREATE STREAM A (v INT) FROM synthetic WITH (durability = 'disk')")
    with pytest.raises(SqlError, match="A cannot have durability 'store'"):
        run(home, "ALTER STREAM A SET (durability = 'store')")
    assert shown(home) == {"A": "disk"}
    assert not home.ahead_of("A").exists()
    home.close()


@pytest.fixture
def plant(tmp_path: Path, store: FallibleStore) -> Path:
    """A closed database with a stream, whose rows wait on the disk."""
    folder = tmp_path / "db"
    home = Home(folder, None, "durable://site/logs", lambda rows, where: set())
    run(home, "CREATE STREAM A (x DOUBLE) FROM synthetic WITH (durability = 'disk')")
    ahead = home.manager._watched["A"].stream.store.ahead
    assert ahead is not None
    columns = [pa.array([1.0, 2.0]), pa.array([1, 2]).cast(TIMESTAMP)]
    ahead.append(pa.RecordBatch.from_arrays(columns, names=["x", TIME]), watermark=2)
    store.is_away = True
    home.close()
    store.is_away = False
    assert LogReader.open("durable://site/logs/a").end.row == 0
    return folder


def test_rows_that_wait_are_checked(plant: Path, store: FallibleStore) -> None:
    logs = "durable://site/logs"
    assert check_database(plant, logs).problems == ()
    segment = plant / "write-ahead" / "a" / segment_name(0)
    good = segment.read_bytes()
    segment.write_bytes(good[:-100] + b"?" + good[-99:])
    assert str(segment.parent) in check_database(plant, logs).problems[0].where
    segment.write_bytes(good)
    (plant / "write-ahead" / "a").rename(plant / "write-ahead" / "b")
    problems = check_database(plant, logs).problems
    assert [one.what for one in problems] == ["2 rows wait for a log that is not there"]


@pytest.mark.parametrize("to", ["durable://elsewhere/logs", "logs"])
def test_rows_that_wait_are_moved_with_their_log(
    plant: Path, store: FallibleStore, tmp_path: Path, to: str
) -> None:
    wanted = to if "://" in to else str(tmp_path / to)
    move_logs(plant, wanted)
    assert LogReader.open(inside(wanted, "a")).end.row == 2
    home = Home(plant, None, None, lambda rows, where: set())
    assert shown(home) == {"A": "disk"}
    assert LogReader.open(home.log_of("A")).end.row == 2
    assert home.ahead_of("A").exists() == ("://" in to)
    home.close()


def test_a_database_goes_on_with_what_waits(plant: Path, store: FallibleStore) -> None:
    home = Home(plant, None, None, lambda rows, where: set())
    assert LogReader.open(home.log_of("A")).end.row == 2
    run(home, "DROP STREAM A")
    home.close()
    assert not list((plant / "write-ahead").iterdir())
