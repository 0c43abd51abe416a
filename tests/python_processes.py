"""The Python processes that Spark has started for this one: workers, and readers of sources."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def kill_python_processes() -> int:
    """Kill all that are working, except the one that forks them; returns how many."""
    parents = _parents()
    below = [pid for pid in parents if os.getpid() in _ancestors(pid, parents)]
    forked = [pid for pid in below if _is_python(pid) and _is_python(parents[pid])]
    workers = [pid for pid in forked if parents[pid] != os.getpid()]
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(workers)


def _parents() -> dict[int, int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    return parents


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    ancestors = set()
    while pid in parents and parents[pid] not in ancestors:
        pid = parents[pid]
        ancestors.add(pid)
    return ancestors


def _is_python(pid: int) -> bool:
    try:
        return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return False
