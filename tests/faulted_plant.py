"""A plant that faults happen to: a server, its catalog, a broker and a disk; and what is right."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

import nilometer as nm
from nilometer.log.location import inside
from nilometer.log.reader import LogReader
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.server.scopes import Scope
from nilometer.server.tokens import Tokens
from tests.mosquitto import Mosquitto
from tests.patience import wait_for
from tests.postgres import Postgres
from tests.small_disk import SmallDisk
from tests.spark_cluster import SparkCluster, free_port

QUERIES: Final = {
    "pairs": "SELECT X.n AS n FROM Filed X, Filed Y WINDOW = 1 DAY WHERE X.n = Y.n",
    "passed_on": "SELECT n FROM Heard",
    "counted": "SELECT COUNT(*) AS n FROM Filed [RANGE 10 DAYS]",
}
OWN: Final = frozenset({"pairs", "passed_on"})
"""Queries in engines of their own, which have checkpoints; the others share one that needs none."""
FOLLOWED: Final = ("pairs", "passed_on")
_ON_CLUSTER: Final = """
[spark]
master = "{url}"
"spark.driver.host" = "127.0.0.1"
"spark.executor.memory" = "512m"
# Executors have the same host, but not the same disk.
"spark.shuffle.readHostLocalDisk" = false
"spark.network.timeout" = "{lost_after}s"
"spark.network.timeoutInterval" = "5s"
"spark.executor.heartbeatInterval" = "5s"
"""
LOST_AFTER: Final = 30
"""After so many seconds an executor that says nothing counts as lost."""
_IN_STORE: Final = ", durability = 'disk', ship_every = '1 second'"
WAIT: Final = 240.0


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
    store: str = ""
    """The options of a store's address that has the logs; empty: they are on the disk."""
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

    @property
    def logs(self) -> str:
        if self.store:
            return f"s3://somebody:secret@bucket/plant?{self.store}"
        return str(self.database / "logs")

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
        if self.cluster is not None:
            settings += _ON_CLUSTER.format(url=self.cluster.url, lost_after=LOST_AFTER)
        config.write_text(settings)
        command += ["--db", str(self.database), "--catalog", self.catalog, "--config", str(config)]
        if self.store:
            command += ["--logs", self.logs]
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

        wait_for(is_ready, WAIT, every=0.2, alive=lambda: self.is_alive)

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
            timeout=WAIT,
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def declare(self) -> None:
        """Create streams and queries, once."""
        more = _IN_STORE if self.store else ""
        self.sql(
            "CREATE STREAM Filed (n BIGINT, HISTORY FOREVER) FROM file "
            f"WITH (address = '{self.readings}', speed = 'max', follow = true{more})"
        )
        self.sql(
            "CREATE STREAM Heard (n BIGINT, HISTORY FOREVER) FROM mqtt "
            f"WITH (address = '{self.broker.url}/readings', qos = 1{more})"
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
        reader = LogReader.open(inside(self.logs, log))
        return sorted(n for one in reader.read(reader.start) for n in one.rows["n"].to_pylist())

    def answer(self) -> int:
        reader = LogReader.open(inside(self.logs, "counted"))
        frames = [one.rows for one in reader.read(reader.start)]
        return sum(
            n * diff
            for rows in frames
            for n, diff in zip(rows["n"].to_pylist(), rows["_diff"].to_pylist(), strict=True)
        )

    def report(self) -> str:
        counts = {one: len(self.rows(one)) for one in ("filed", "heard", "pairs", "passed_on")}
        followed = {name: len(rows) for name, rows in self.followed.items()}
        words = f"of {self.filed} and {self.heard} readings: {counts}, answer {self.answer()}"
        words += f"\nfollowers have {followed}; ended: {self.lost}"
        errors = (self.folder / "server.err").read_text(errors="replace")[-2000:]
        with suppress(Exception):
            words += f"\n{self.sql('SHOW QUERIES')}"
        return f"{words}\n{errors}"
