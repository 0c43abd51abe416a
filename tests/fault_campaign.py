"""A campaign of faults against a running plant: make faults, or python -m tests.fault_campaign.

A server with a catalog in PostgreSQL reads a growing file and topics of a broker, and runs queries
over them, first with Spark in the server's own process, then on a real cluster of two workers.
Fault after fault, chosen at random, hits the server, Java, executors, Python workers, the broker,
the catalog, the disk, logs and checkpoint files, while readings come. After each one the plant is
checked: every reading is stored once, every query has the results of an undisturbed run, and so
have clients that follow them all the time.
The folder keeps a record: the same command continues the count, with a new plant.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

import nilometer as nm
from nilometer.log.reader import LogReader
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.scopes import Scope
from nilometer.server.tokens import Tokens
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.patience import wait_for
from tests.postgres import Postgres, start_postgres
from tests.small_disk import SmallDisk, small_disk
from tests.spark_cluster import SparkCluster, free_port, spark_cluster

READINGS: Final = 40
"""New readings of each kind around each fault."""
QUERIES: Final = {
    "pairs": "SELECT X.n AS n FROM Filed X, Filed Y WINDOW = 1 DAY WHERE X.n = Y.n",
    "passed_on": "SELECT n FROM Heard",
    "counted": "SELECT COUNT(*) AS n FROM Filed [RANGE 10 DAYS]",
}
OWN: Final = frozenset({"pairs", "passed_on"})
"""Queries in engines of their own, which have checkpoints; the others share one that needs none."""
FOLLOWED: Final = ("pairs", "passed_on")
PLACES: Final = ("machine", "cluster")
"""Where queries run: each place has half of the faults."""
_ON_CLUSTER: Final = """
[spark]
master = "{}"
"spark.driver.host" = "127.0.0.1"
"spark.executor.memory" = "512m"
# Both executors have the same host, but not the same disk.
"spark.shuffle.readHostLocalDisk" = false
"""
_WAIT: Final = 240.0


@dataclass
class Plant:
    """All processes, and how many readings there were."""

    folder: Path
    disk: SmallDisk
    postgres: Postgres
    catalog: str
    broker: Mosquitto
    cluster: SparkCluster | None = None
    """None: Spark is in the server."""
    port: int = field(default_factory=free_port)
    token: str = ""
    server: subprocess.Popen[bytes] | None = None
    filed: int = 0
    heard: int = 0
    chance: random.Random = field(default_factory=random.Random)
    followed: dict[str, list[int]] = field(default_factory=dict)
    """What followers have been told of each query."""
    lost: dict[str, BaseException] = field(default_factory=dict)
    """Why followers have ended, which they must not."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.disk.folder / "plant"

    # The server

    def start(self) -> None:
        """Start the server, and wait until it is ready."""
        if not self.token:
            with SensorCatalog.open(self.catalog) as catalog:
                self.token = Tokens(catalog).create("campaign", Scope.ADMIN)
        output = self.folder / "server.out"
        command = [sys.executable, "-m", "nilometer", "serve", "--port", str(self.port)]
        config = self.folder / "plant.toml"
        settings = f'[files]\nallowed = ["{self.folder}"]\n'
        config.write_text(settings + (_ON_CLUSTER.format(self.cluster.url) if self.cluster else ""))
        command += ["--db", str(self.database), "--catalog", self.catalog, "--config", str(config)]
        with output.open("wb") as out, (self.folder / "server.err").open("ab") as errors:
            self.server = subprocess.Popen(
                command,
                stdout=out,
                stderr=errors,
                start_new_session=True,
                env={
                    **os.environ,
                    "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
                    "PYSPARK_PYTHON": sys.executable,
                },
            )

        def is_ready() -> bool:
            with suppress(httpx.TransportError):
                return httpx.get(f"{self.url}/ready").status_code == 200
            return False

        wait_for(is_ready, _WAIT, every=0.2, alive=lambda: self.is_alive)

    @property
    def is_alive(self) -> bool:
        return self.server is not None and self.server.poll() is None

    def kill(self) -> None:
        if self.server is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()

    def sql(self, statement: str) -> Any:
        answer = httpx.post(
            f"{self.url}/sql",
            json={"statement": statement},
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=_WAIT,
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def declare(self) -> None:
        """Create streams and queries, once."""
        self.sql(
            "CREATE STREAM Filed (n BIGINT, HISTORY FOREVER) FROM file "
            f"WITH (address = '{self.readings}', speed = 'max', follow = true)"
        )
        self.sql(
            "CREATE STREAM Heard (n BIGINT, HISTORY FOREVER) FROM mqtt "
            f"WITH (address = '{self.broker.url}/readings', qos = 1)"
        )
        for name, text in QUERIES.items():
            own = " WITH (engine = 'own')" if name in OWN else ""
            self.sql(f"CREATE QUERY {name}{own} AS {text} FROM START")
        for name in FOLLOWED:
            self.followed[name] = []
            threading.Thread(target=self.follow, args=(name,), daemon=True).start()

    def follow(self, name: str) -> None:
        """Follow a query as a client does, from its first result on and for ever."""
        try:
            with nm.Client(self.url, self.token) as client:
                for row in client.query(name).follow(start="start"):
                    self.followed[name].append(row["n"])
        except BaseException as error:
            self.lost[name] = error
            raise

    # Readings

    @property
    def readings(self) -> Path:
        return self.folder / "readings.jsonl"

    def file_readings(self, count: int) -> None:
        with self.readings.open("a") as file:
            for _ in range(count):
                file.write(json.dumps({"n": self.filed}) + "\n")
                self.filed += 1

    def publish_readings(self, count: int) -> None:
        """Publish readings to the broker; it has acknowledged them when this returns."""
        with socket.create_connection(("127.0.0.1", self.broker.port), timeout=30) as broker:
            client = b"campaign"
            body = b"\0\4MQTT\4\2\0\0" + struct.pack(">H", len(client)) + client
            broker.sendall(bytes([0x10, len(body)]) + body)
            assert broker.recv(4)[0] == 0x20
            for number in range(1, count + 1):
                topic, said = b"readings", json.dumps({"n": self.heard}).encode()
                body = struct.pack(">H", len(topic)) + topic + struct.pack(">H", number) + said
                broker.sendall(bytes([0x32, len(body)]) + body)
                assert broker.recv(4)[0] == 0x40
                self.heard += 1

    # The judge

    def is_right(self) -> bool:
        """Whether every reading is stored, and every result is there."""
        return (
            self.rows("filed") == list(range(self.filed))
            and self.rows("heard") == list(range(self.heard))
            and self.rows("pairs") == list(range(self.filed))
            and self.rows("passed_on") == list(range(self.heard))
            and self.answer() == self.filed
            and sorted(self.followed["pairs"]) == list(range(self.filed))
            and sorted(self.followed["passed_on"]) == list(range(self.heard))
        )

    def rows(self, log: str) -> list[int]:
        """The numbers in a log, sorted, with duplicates."""
        reader = LogReader.open(self.database / "logs" / log)
        return sorted(n for one in reader.read(reader.start) for n in one.rows["n"].to_pylist())

    def answer(self) -> int:
        reader = LogReader.open(self.database / "logs" / "counted")
        frames = [one.rows for one in reader.read(reader.start)]
        return sum(
            n * diff
            for rows in frames
            for n, diff in zip(rows["n"].to_pylist(), rows["_diff"].to_pylist(), strict=True)
        )

    def told(self) -> str:
        found = {one: len(self.rows(one)) for one in ("filed", "heard", "pairs", "passed_on")}
        followed = {name: len(rows) for name, rows in self.followed.items()}
        words = f"of {self.filed} and {self.heard} readings: {found}, answer {self.answer()}"
        words += f"\nfollowers have {followed}; ended: {self.lost}"
        errors = (self.folder / "server.err").read_text(errors="replace")[-2000:]
        with suppress(Exception):
            words += f"\n{self.sql('SHOW QUERIES')}"
        return f"{words}\n{errors}"


# Faults


def kill_server(plant: Plant) -> None:
    plant.kill()


def stop_server(plant: Plant) -> None:
    assert plant.server is not None
    plant.server.send_signal(signal.SIGTERM)
    plant.server.wait(_WAIT)


def pause_server(plant: Plant) -> None:
    assert plant.server is not None
    os.killpg(plant.server.pid, signal.SIGSTOP)
    time.sleep(plant.chance.uniform(0.5, 4))
    os.killpg(plant.server.pid, signal.SIGCONT)


def kill_java(plant: Plant) -> None:
    """Kill the driver's Java, with which the server ends."""
    assert plant.server is not None
    for one in psutil.Process(plant.server.pid).children(recursive=True):
        if one.name() == "java":
            one.kill()
    plant.server.wait(_WAIT)


def kill_executor(plant: Plant) -> None:
    found = [one for one in _started() if "CoarseGrainedExecutorBackend" in " ".join(_command(one))]
    _kill_one(plant, found)


def kill_machine(plant: Plant) -> None:
    """Lose a machine of the cluster with all that runs there, and get another one."""
    assert plant.cluster is not None
    number = plant.chance.randrange(len(plant.cluster.workers))
    plant.cluster.kill_worker(number)
    time.sleep(plant.chance.uniform(0, 4))
    plant.cluster.start_worker(number)


def kill_worker(plant: Plant) -> None:
    """Kill a Python process that computes, wherever it is."""
    _kill_one(plant, [one for one in _started() if "python" in _name(one) and not _busy(one)])


def kill_broker(plant: Plant) -> None:
    """Kill the broker, which may lose what it has acknowledged: so all must be stored before."""
    wait_for(lambda: plant.rows("heard") == list(range(plant.heard)), _WAIT, said=plant.told)
    plant.broker.kill()
    time.sleep(plant.chance.uniform(0, 3))
    plant.broker.start()


def kill_catalog(plant: Plant) -> None:
    """Kill a process of PostgreSQL, which then ends all and recovers as after a power cut."""
    postmaster = int((plant.postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
    for one in psutil.Process(postmaster).children():
        with suppress(psutil.NoSuchProcess):
            one.kill()
    time.sleep(plant.chance.uniform(0, 2))


def fill_disk(plant: Plant) -> None:
    plant.disk.fill()
    time.sleep(plant.chance.uniform(0.5, 4))
    plant.disk.empty()


def cut_checkpoint(plant: Plant) -> None:
    """Lose power: the newest checkpoint files that were not forced to the disk are cut off."""
    plant.kill()
    query = plant.chance.choice(sorted(OWN))
    folder = plant.database / "checkpoints" / query / plant.chance.choice(["offsets", "commits"])
    files = sorted((f for f in folder.iterdir() if f.name.isdecimal()), key=lambda f: int(f.name))
    if files:
        whole = files[-1].read_bytes()
        files[-1].write_bytes(whole[: plant.chance.randrange(len(whole) + 1)])
        if plant.chance.random() < 0.3:
            files[-1].unlink()


def tear_log(plant: Plant) -> None:
    """Lose power within an append: what was written of it follows all that was acknowledged."""
    plant.kill()
    logs = [one for one in sorted((plant.database / "logs").iterdir()) if any(one.glob("*.seg"))]
    newest = max(plant.chance.choice(logs).glob("*.seg"))
    length = plant.chance.randrange(1, 4096)
    kept = newest.read_bytes()[-length:]
    torn = kept if plant.chance.random() < 0.5 else plant.chance.randbytes(length)
    with newest.open("ab") as file:
        file.write(torn[: plant.chance.randrange(1, len(torn) + 1)])


@dataclass(frozen=True)
class Fault:
    happen: Callable[[Plant], None]
    weight: int
    """How often it is chosen, relative to the others."""
    places: tuple[str, ...] = PLACES


FAULTS: Final = {
    "server killed": Fault(kill_server, 3),
    "server stopped": Fault(stop_server, 1),
    "server paused": Fault(pause_server, 3),
    "Java killed": Fault(kill_java, 2),
    "executor killed": Fault(kill_executor, 8, ("cluster",)),
    "machine killed": Fault(kill_machine, 4, ("cluster",)),
    "worker killed": Fault(kill_worker, 6),
    "broker killed": Fault(kill_broker, 4),
    "catalog killed": Fault(kill_catalog, 4),
    "disk full": Fault(fill_disk, 4),
    "checkpoint cut": Fault(cut_checkpoint, 3),
    "log torn": Fault(tear_log, 2),
}


def _started() -> list[psutil.Process]:
    """All processes that the campaign has started."""
    return psutil.Process().children(recursive=True)


def _kill_one(plant: Plant, found: list[psutil.Process]) -> None:
    with suppress(psutil.NoSuchProcess):
        plant.chance.choice(found).kill()


def _command(one: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return one.cmdline()
    return []


def _name(one: psutil.Process) -> str:
    with suppress(psutil.Error):
        return one.name()
    return ""


def _busy(one: psutil.Process) -> bool:
    """Whether others depend on it."""
    with suppress(psutil.Error):
        return bool(one.children())
    return True


class Record:
    """A file with a line for each fault that was survived."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.lines: list[dict[str, Any]] = []
        if file.exists():
            self.lines = [json.loads(line) for line in file.read_text().splitlines()]

    def add(self, fault: str, place: str, seconds: float) -> None:
        line = {"fault": fault, "place": place, "seconds": round(seconds, 1)}
        self.lines.append(line)
        with self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def count(self, place: str) -> int:
        return sum(one["place"] == place for one in self.lines)

    def tell(self) -> None:
        """Print how many of each kind there were."""
        counts = Counter((one["fault"], one["place"]) for one in self.lines)
        print("".join(f"{place:>9}" for place in PLACES))
        for name in FAULTS:
            print("".join(f"{counts[name, place]:9d}" for place in PLACES) + f"  {name}")
        print(f"{len(self.lines)} faults survived: every reading once, every result right")


def run_campaign(
    record: Record, folder: Path, place: str, count: int, seed: int, end: float, names: list[str]
) -> None:
    """Run faults in one place, up to a number or an instant of time.monotonic()."""
    if record.count(place) >= count or time.monotonic() >= end:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [name for name in names if place in FAULTS[name].places]
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / "disk", 512))
        postgres = stack.enter_context(start_postgres())
        broker = stack.enter_context(start_mosquitto(folder / "broker", persistence=True))
        plant = Plant(folder, disk, postgres, postgres.new_database(), broker)
        if place == "cluster":
            plant.cluster = stack.enter_context(spark_cluster(folder))
        stack.callback(plant.kill)
        plant.readings.touch()
        plant.start()
        plant.declare()
        while (done := record.count(place)) < count and time.monotonic() < end:
            plant.chance = random.Random(f"{seed} {place} {done}")
            [name] = plant.chance.choices(names, [FAULTS[one].weight for one in names])
            began = time.monotonic()
            plant.file_readings(READINGS)
            plant.publish_readings(READINGS)
            time.sleep(plant.chance.uniform(0, 1.5))
            FAULTS[name].happen(plant)
            if not plant.is_alive:
                plant.start()
            plant.file_readings(READINGS)
            plant.publish_readings(READINGS)
            wait_for(plant.is_right, _WAIT, every=0.2, said=plant.told)
            took = time.monotonic() - began
            record.add(name, place, took)
            print(f"{done + 1} of {count} ({place}): {name}, {took:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--folder", type=Path, default=Path("build/faults"))
    parser.add_argument("--only", action="append", choices=FAULTS, help="faults of this kind")
    parser.add_argument("--place", action="append", choices=PLACES, help="only there")
    given = parser.parse_args()
    logging.getLogger("nilometer.client").setLevel(logging.ERROR)  # it says when it connects again
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    print(f"seed {seed}, folder {given.folder}", flush=True)
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    record = Record(folder / "faults.jsonl")
    end = time.monotonic() + 60 * given.minutes
    places = given.place or list(PLACES)
    for place in places:
        share = given.count // len(places)
        names = given.only or list(FAULTS)
        run_campaign(record, folder / place, place, share, seed, end, names)
    record.tell()


if __name__ == "__main__":
    main()
