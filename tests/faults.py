"""What happens to a plant: kills, pauses, a full disk, power cuts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psutil

from tests.faulted_plant import LOST_AFTER, OWN, WAIT, Plant
from tests.patience import wait_for

PLACES: Final = ("machine", "cluster")
"""Where queries run: each place has half of the faults."""


def kill_server(plant: Plant) -> None:
    plant.kill()


def stop_server(plant: Plant) -> None:
    assert plant.server is not None
    plant.server.send_signal(signal.SIGTERM)
    plant.server.wait(WAIT)


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
    plant.server.wait(WAIT)


def kill_executor(plant: Plant) -> None:
    _kill_one(plant, lambda one: "CoarseGrainedExecutorBackend" in " ".join(_command(one)))


def pause_executor(plant: Plant) -> None:
    """Stop an executor until it counts as lost; its tasks go on beside those in their place.

    So does its worker, which would kill it before.
    """
    assert plant.cluster is not None
    worker = psutil.Process(plant.chance.choice(plant.cluster.workers).pid)
    stopped = [worker, *worker.children(recursive=True)]
    for one in stopped:
        with suppress(psutil.NoSuchProcess):
            one.suspend()
    time.sleep(LOST_AFTER * plant.chance.uniform(1.3, 1.8))
    for one in stopped:
        with suppress(psutil.NoSuchProcess):
            one.resume()


def kill_machine(plant: Plant) -> None:
    """Lose a machine of the cluster with all that runs there, and get another one."""
    assert plant.cluster is not None
    number = plant.chance.randrange(len(plant.cluster.workers))
    plant.cluster.kill_worker(number)
    time.sleep(plant.chance.uniform(0, 4))
    plant.cluster.start_worker(number)


def kill_worker(plant: Plant) -> None:
    """Kill a Python process that computes, wherever it is."""
    _kill_one(plant, lambda one: "python" in _name(one) and not _busy(one))


def kill_broker(plant: Plant) -> None:
    """Kill the broker, which may lose what it has acknowledged: so all must be stored before."""
    wait_for(lambda: plant.rows("heard") == list(range(plant.heard)), WAIT, said=plant.report)
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
    folder = plant.database / ("write-ahead" if plant.store else "logs")
    logs = [one for one in sorted(folder.iterdir()) if any(one.glob("*.seg"))]
    newest = max(plant.chance.choice(logs).glob("*.seg"))
    length = plant.chance.randrange(1, 4096)
    tail = newest.read_bytes()[-length:]
    torn = tail if plant.chance.random() < 0.5 else plant.chance.randbytes(length)
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
    "executor paused": Fault(pause_executor, 1, ("cluster",)),
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


def _kill_one(plant: Plant, is_meant: Callable[[psutil.Process], bool]) -> None:
    """Kill one of these processes, as soon as there are any: others may just have been killed."""
    processes = wait_for(lambda: [one for one in _started() if is_meant(one)], WAIT, every=0.2)
    with suppress(psutil.NoSuchProcess):
        plant.chance.choice(processes).kill()


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
