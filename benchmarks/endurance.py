"""An hour of a plant: 1,000 readings per second from a broker, and continuous queries.

Run separately: python -m benchmarks.endurance [--minutes 60] [--rate 1000]. The server is started
as users start it and keeps what its limits allow; every minute its memory and its folder are
measured. At the end no reading may be missing, and neither memory nor disk may have grown by more
than a tenth from the second quarter of the run to the last.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Final

import paho.mqtt.client as mqtt
import psutil

from tests.mosquitto import Mosquitto, start_mosquitto
from tests.server_at_work import ServerAtWork, server_at_work

ROOMS: Final = 50
AT_ONCE: Final = 2000
BROKER: Final = ("max_inflight_messages 0", "max_queued_messages 0")
QUERIES: Final = {
    "mean": "SELECT room, AVG(t) AS mean, COUNT(*) AS n FROM Climate [RANGE 60 SECONDS] "
    "GROUP BY room EMIT CHANGES",
    "warm": "SELECT room, t FROM Climate WHERE t > 24",
    "pairs": "SELECT A.room, A.t, B.t AS other FROM Climate A, Climate B WINDOW = 1 SECOND "
    "WHERE A.room = B.room AND A.t > 24 AND B.t < 16",
    "minutes": "SELECT room, window_start, MAX(t) AS highest FROM TUMBLE(Climate, 1 MINUTE) "
    "GROUP BY room, window_start",
}
GROWTH: Final = 1.1


class Publisher(threading.Thread):
    """Publishes a number of readings per second until it is stopped."""

    def __init__(self, broker: Mosquitto, rate: int) -> None:
        super().__init__(daemon=True)
        self.published = 0
        self._rate = rate
        self._over = threading.Event()
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(1000)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()

    def run(self) -> None:
        begun = time.monotonic()
        while not self._over.wait(0.02):
            due = int((time.monotonic() - begun) * self._rate)
            due = min(due, self.published + AT_ONCE)  # after a pause it catches up gradually
            for number in range(self.published, due):
                reading = {"room": number % ROOMS, "t": 20 + (number * 7919 % 1000) / 100 - 5}
                sent = self._client.publish("climate", json.dumps(reading), qos=1)
            if due > self.published:
                sent.wait_for_publish(60)
            self.published = due

    def stop(self) -> None:
        """Stop, once the broker has acknowledged every message."""
        self._over.set()
        self.join()
        self._client.loop_stop()
        self._client.disconnect()


def measure(server: ServerAtWork, sent: Publisher, begun: float) -> dict[str, Any]:
    """The figures of a minute."""
    root = psutil.Process(server.pid)
    memory = {"server": 0.0, "java": 0.0, "workers": 0.0}
    for one in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            is_java = one.name() == "java"
            part = "server" if one.pid == root.pid else "java" if is_java else "workers"
            memory[part] += one.memory_full_info().pss / 1e6
    queries = server.sql("SHOW QUERIES")["rows"]
    return {
        "minute": round((time.monotonic() - begun) / 60, 1),
        "published": sent.published,
        "stored": stored(server),
        **{f"{part} MB": round(size) for part, size in memory.items()},
        "MB": round(sum(memory.values())),
        "disk MB": round(size_of(server.folder) / 1e6, 1),
        "states": sorted({one["state"] for one in queries}),
        "lag s": max((one["lag"] or 0 for one in queries), default=0) / 1e6,
    }


def stored(server: ServerAtWork) -> int:
    """The total number of readings that the stream has received."""
    return int(server.sql("SHOW STREAMS")["rows"][0]["rows"])


def size_of(folder: Path) -> int:
    total = 0
    for one in folder.rglob("*"):
        with suppress(OSError):
            total += one.stat().st_blocks * 512
    return total


def judge(seen: Sequence[dict[str, Any]]) -> list[str]:
    """What grew from the second quarter of the run to the last."""
    quarter = max(1, len(seen) // 4)
    problems = []
    for part in ("MB", "disk MB"):
        early = median(one[part] for one in seen[quarter : 2 * quarter])
        late = median(one[part] for one in seen[-quarter:])
        print(f"{part}: {early} in the second quarter, {late} in the last")
        if late > early * GROWTH:
            problems.append(f"{part} has grown by {late / early - 1:.0%}")
    return problems


def run(minutes: float, rate: int) -> None:
    """Run a plant, and print a line every minute."""
    with (
        tempfile.TemporaryDirectory(prefix="nilometer-hour-") as folder,
        start_mosquitto(Path(folder, "broker"), settings=BROKER) as broker,
        server_at_work(Path(folder, "plant"), env={"JAVA_TOOL_OPTIONS": ""}) as server,
    ):
        server.sql(
            "CREATE STREAM Climate (room BIGINT, t DOUBLE, HISTORY 10 MINUTES) FROM mqtt "
            f"WITH (address = 'mqtt://127.0.0.1:{broker.port}/climate', qos = 1)"
        )
        for name, query in QUERIES.items():
            limits = "WITH (results = '20MB', history = '10 minutes')"
            server.sql(f"CREATE QUERY {name} {limits} AS {query}")
        sent = Publisher(broker, rate)
        sent.start()
        begun = time.monotonic()
        seen = []
        while time.monotonic() - begun < minutes * 60:
            time.sleep(60)
            seen.append(measure(server, sent, begun))
            print(json.dumps(seen[-1]), flush=True)
        sent.stop()
        end = time.monotonic() + 60
        while stored(server) < sent.published and time.monotonic() < end:
            time.sleep(1)
        problems = judge(seen)
        if stored(server) != sent.published:
            problems.append(f"{stored(server)} of {sent.published} readings were stored")
        print("; ".join(problems) or "all readings stored; memory and disk are bounded")
        print(server.errors.read_text())
    if problems:
        raise SystemExit(1)


def main() -> None:
    """Print a line every minute, and a verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=1000)
    options = parser.parse_args()
    run(options.minutes, options.rate)


if __name__ == "__main__":
    main()
