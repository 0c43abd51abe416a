"""A day in the life of a database: nothing is lost, nothing doubled, whatever is done to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest

from tests.mosquitto import Mosquitto, start_mosquitto
from tests.patience import wait_for
from tests.server_at_work import ServerAtWork, server_at_work
from tests.small_disk import SmallDisk, small_disk

AT_ONCE = 200


class Day:
    """A broker, a database that listens to it, and how many messages there have been."""

    def __init__(self, folder: Path, broker: Mosquitto, disk: SmallDisk) -> None:
        self.folder = folder
        self.broker = broker
        self.disk = disk
        self.published = 0

    @property
    def address(self) -> str:
        return f"mqtt://127.0.0.1:{self.broker.port}/day"

    def publish(self, count: int = AT_ONCE) -> None:
        """So many more messages, each with its number; the broker has them all."""
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.broker.port)
        client.loop_start()
        for number in range(self.published, self.published + count):
            sent = client.publish("day", json.dumps({"n": number, "extra": number * 2}), qos=1)
            sent.wait_for_publish(60)
        client.loop_stop()
        client.disconnect()
        self.published += count

    def require_all(self, server: ServerAtWork) -> None:
        """Every message is stored once, and counted once by every query."""
        wanted = self.published
        wait_for(
            lambda: self._counts(server) == (wanted, wanted, (wanted + 1) // 2, wanted),
            said=lambda: f"{self._counts(server)} of {wanted}",
            every=0.5,
        )
        phases = {one["name"]: one["state"] for one in _rows(server, "SHOW QUERIES")}
        assert set(phases.values()) == {"running"}, phases

    def _counts(self, server: ServerAtWork) -> tuple[int, ...]:
        stored = _rows(server, "SELECT COUNT(*) AS n, COUNT(DISTINCT n) AS d FROM S")[0]
        even = _rows(server, "SELECT COUNT(DISTINCT n) AS d, COUNT(*) AS n FROM even")[0]
        assert even["d"] == even["n"], "a result came twice"
        counted = _rows(server, "SELECT SUM(c) AS n FROM digits")[0]
        own = _rows(server, "SELECT COUNT(*) AS n, COUNT(DISTINCT n) AS d FROM own")[0]
        assert own["d"] == own["n"], "a result came twice"
        return stored["n"], stored["d"], even["n"], int(counted["n"] or 0)


def _rows(server: ServerAtWork, statement: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = server.sql(statement)["rows"]
    return rows


def command(*given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nilometer", *given], capture_output=True, text=True, check=False
    )


@contextmanager
def serving(folder: Path) -> Iterator[ServerAtWork]:
    backups = folder.parent / "backups"
    config = folder.parent / "server.toml"
    config.write_text(f'[server]\nbackups = ["{backups}"]\n')
    with server_at_work(folder, "--config", str(config)) as server:
        yield server


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    with (
        small_disk(tmp_path / "disk", 400) as disk,
        start_mosquitto(tmp_path / "broker", persistence=True) as broker,
    ):
        yield Day(disk.folder / "plant", broker, disk)


@pytest.mark.soak
def test_a_day_in_the_life_of_a_database(day: Day, tmp_path: Path) -> None:
    with serving(day.folder) as server:
        make(day, server)
        alter(day, server)
        backed_up = back_up(day, server, tmp_path / "token")
        day.publish()
        server.kill()
    day.publish()
    with serving(day.folder) as server:
        day.require_all(server)
        fill_the_disk(day, server)
    move(day)
    upgrade(day)
    restore(day, tmp_path / "restored", backed_up)


def make(day: Day, server: ServerAtWork) -> None:
    server.sql(
        "CREATE STREAM S (n BIGINT, EVERY 1 DAY, HISTORY FOREVER) FROM mqtt "
        f"WITH (address = '{day.address}', qos = 1)"
    )
    server.sql("CREATE QUERY even AS SELECT n FROM S WHERE n % 2 = 0")
    server.sql(
        "CREATE QUERY digits AS SELECT n % 10 AS d, COUNT(*) AS c FROM S [UNBOUNDED] "
        "GROUP BY n % 10 EMIT CHANGES"
    )
    server.sql("CREATE QUERY own WITH (engine = 'own') AS SELECT n FROM S WHERE n % 3 = 0")
    day.publish()
    day.require_all(server)


def alter(day: Day, server: ServerAtWork) -> None:
    server.sql("ALTER STREAM S ADD COLUMN extra BIGINT")
    day.publish()
    day.require_all(server)
    rows = _rows(server, "SELECT COUNT(extra) AS n, MIN(n) AS first FROM S WHERE extra >= 0")
    assert rows == [{"n": AT_ONCE, "first": AT_ONCE}]


def back_up(day: Day, server: ServerAtWork, token: Path) -> int:
    """Make a backup while messages come; how many there were before."""
    before = day.published
    token.write_text(server.tokens["admin"])
    token.chmod(0o600)
    backups = str(day.folder.parent / "backups")
    done = command("backup", backups, "--server", server.url, "--token-file", str(token))
    assert done.returncode == 0, done.stderr
    day.publish()
    day.require_all(server)
    return before


def fill_the_disk(day: Day, server: ServerAtWork) -> None:
    day.disk.fill()
    day.publish()
    day.disk.empty()
    day.publish()
    day.require_all(server)


def move(day: Day) -> None:
    """To another place, and back."""
    elsewhere = day.disk.folder / "elsewhere" / "plant"
    elsewhere.parent.mkdir()
    day.folder.rename(elsewhere)
    checked = command("check", str(elsewhere))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with serving(elsewhere) as server:
        day.publish()
        day.require_all(server)
    elsewhere.rename(day.folder)
    with serving(day.folder) as server:
        day.publish()
        day.require_all(server)


def upgrade(day: Day) -> None:
    """A database of before has no version, and is brought up to date; a newer one is refused."""
    version = day.folder / "format.json"
    version.unlink()
    with serving(day.folder) as server:
        day.publish()
        day.require_all(server)
    assert version.exists()


def restore(day: Day, folder: Path, backed_up: int) -> None:
    """What was stored when the backup was made, and not a row of what came later."""
    done = command("restore", str(day.folder.parent / "backups"), str(folder))
    assert done.returncode == 0, done.stderr
    day.broker.stop()
    with serving(folder) as server:
        wait_for(lambda: _rows(server, "SELECT COUNT(*) AS n FROM S")[0]["n"] == backed_up)
        even = "SELECT COUNT(*) AS n, COUNT(DISTINCT n) AS d FROM even"
        wanted = {"n": backed_up // 2, "d": backed_up // 2}
        wait_for(lambda: _rows(server, even)[0] == wanted, said=lambda: _rows(server, even))
