"""A campaign of faults against a running plant: make faults, or python -m tests.fault_campaign.

A server with a catalog in PostgreSQL reads a growing file and topics of a broker, and runs queries
over them, first with Spark in the server's own process, then on a real cluster of three workers
with logs in an S3 store.
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
import random
import shutil
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.faulted_plant import WAIT, Plant
from tests.faults import FAULTS, PLACES
from tests.mosquitto import start_mosquitto
from tests.patience import wait_for
from tests.postgres import start_postgres
from tests.s3_server import s3_server
from tests.small_disk import small_disk
from tests.spark_cluster import spark_cluster

READINGS: Final = 40
"""New readings of each kind around each fault."""


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
            plant.cluster = stack.enter_context(spark_cluster(folder, workers=3))
            plant.store = stack.enter_context(s3_server())
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
            wait_for(plant.is_right, WAIT, every=0.2, said=plant.report)
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
