"""A manager killed at any moment while a topic fills: no message is lost, none is stored twice."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.log.writer import LogWriter
from tests.kafka_cluster import PARTITIONS, KafkaCluster
from tests.kafka_process import TOPIC
from tests.patience import LONG, wait_for

ROOT = Path(__file__).parents[2]


class Plant:
    """Sends numbers to all partitions until it is stopped.

    Some hundreds a second: the cluster of tests gives out little more than a thousand.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._ends = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        chance = random.Random(3)
        while not self._ends.wait(0.02):
            for _ in range(chance.randrange(1, 12)):
                partition = chance.randrange(PARTITIONS)
                # Some are no readings: they count, too, but are never rows.
                sent = b"{" if chance.random() < 0.02 else b'{"n": %d}' % self.sent
                self._cluster.producer.produce("kills", sent, partition=partition)
                self.sent += sent != b"{"
            self._cluster.producer.poll(0)

    def stop(self) -> int:
        self._ends.set()
        self._thread.join()
        assert self._cluster.producer.flush(LONG) == 0
        return self.sent


@contextmanager
def running(folder: Path, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a manager, which ends in order unless it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kafka_process", str(folder), address],
        stdin=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield process
    except BaseException:
        process.kill()
        raise
    finally:
        process.communicate(input=b"")


def numbers(folder: Path) -> list[int]:
    log = LogReader.open(folder / "K")
    return [one for frame in log.read(log.start) for one in frame.rows["n"].to_pylist()]


def run(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    cluster = KafkaCluster()
    address = f"{cluster.url}/kills"
    cluster.send("kills", b"{")
    LogWriter.open(folder / "K", TOPIC.layout).close()
    now = time.time_ns() // 1000
    register(folder / "K", "r", Position(0, 0), {}, now=now, named=True)
    plant = Plant(cluster)
    for _ in range(kills):
        before = LogReader.open(folder / "K").end
        with running(folder, address) as process:
            wait_for(
                lambda end=before: LogReader.open(folder / "K").end.row > end.row,
                alive=lambda running=process: running.poll() is None,
            )
            time.sleep(chance.uniform(0.0, 0.7))
            process.kill()
    sent = plant.stop()

    def rows() -> int:
        return LogReader.open(folder / "K").end.row

    with running(folder, address):
        wait_for(lambda: rows() >= sent, said=lambda: f"{rows()} of {sent} are stored")
    assert sorted(numbers(folder)) == list(range(sent))
    cluster.close()


def test_a_few_kills(tmp_path: Path) -> None:
    run(tmp_path, 4, seed=1)


@pytest.mark.soak
@pytest.mark.limit(900)
def test_fifty_kills(tmp_path: Path) -> None:
    run(tmp_path, 50, seed=2)
