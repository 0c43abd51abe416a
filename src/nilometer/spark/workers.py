"""What the Python of a cluster's machines lacks: checked at the start, or read from a failure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from nilometer.errors import SessionError
from nilometer.spark.exchange import is_on_one_machine
from nilometer.spark.shared_folders import names_of, number_of_looks

_NEEDED: Final[Mapping[str, str]] = {
    "pyarrow": "pyarrow",
    "pandas": "pandas",
    "numpy": "numpy",
    "google.protobuf": "protobuf",
}
"""The modules without which no task runs, by the packages that bring them."""
_LOOK: Final = f"""
import socket, sys
from importlib.util import find_spec
def is_there(name):
    try:
        return find_spec(name) is not None
    except ImportError:
        return False
missing = [package for name, package in {dict(_NEEDED)}.items() if not is_there(name)]
version = "%d.%d" % sys.version_info[:2]
print(socket.gethostname(), version, ",".join(missing), sys.executable, sep="\\t")
"""
_LOOK_WITHOUT_PYTHON: Final = (
    'cat > /dev/null; "$0" -c "$1" 2> /dev/null || printf "%s\\t\\t\\t\\n" "$(uname -n)"'
)
"""Runs the check by an interpreter; where that fails, prints only the machine."""
_MACHINE: Final = re.compile(r"\(TID \d+\) \((\S+) executor \S+\)")
_VERSION: Final = re.compile(r"different version: (\d+\.\d+) than that in driver: \d")
_NO_PYTHON: Final = re.compile(r"exec: \S+: not found")
_MISSING: Final = (
    re.compile(r"No module named '([\w.]+)'"),
    re.compile(r"\[PACKAGE_NOT_INSTALLED\] (\w+) "),
    re.compile(r"(\w+) is not installed in the worker's Python"),
)
_INTERPRETER: Final = re.compile(r"is not installed in the worker's Python (.+?): ")
_HERE: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class WorkerPython:
    """What a machine of a cluster has as Python."""

    version: str | None = _HERE
    """None: it has none."""
    missing: tuple[str, ...] = ()
    """The packages that it lacks."""
    interpreter: str = "its Python"

    @property
    def lack(self) -> str | None:
        """What is wrong with it, or missing, in words; None: nothing."""
        if self.version is None:
            return f"no Python {_HERE} by the name that the server knows"
        if self.version != _HERE:
            return f"Python {self.version}, but the server has {_HERE}"
        if not self.missing:
            return None
        return f"no {' and no '.join(self.missing)} for {self.interpreter}"


def require_workers(session: SparkSession) -> None:
    """Raise SessionError if the Python of an executor that is there cannot run our tasks.

    Spark would refuse to start a Python worker of another version, and not say where: so no
    Python worker is asked, but the interpreter itself.
    """
    if is_on_one_machine(session):
        return
    context: Any = session.sparkContext
    looks = number_of_looks(session)
    command = ["sh", "-c", _LOOK_WITHOUT_PYTHON, context.pythonExec, _LOOK]
    lines = context._jsc.parallelize(list(range(looks)), looks).pipe(command).collect()
    error = describe_lacks(map(read_look, lines))
    if error is not None:
        raise error


def read_look(line: str) -> tuple[str, WorkerPython]:
    """The machine that was looked at, and what it has."""
    host, version, missing, interpreter = line.split("\t")
    modules = tuple(one for one in missing.split(",") if one)
    return host, WorkerPython(version or None, modules, interpreter)


def describe_lacks(looks: Iterable[tuple[str, WorkerPython]]) -> SessionError | None:
    """Which machines lack what, in one sentence, and what to install; None: they lack nothing."""
    hosts: dict[str, set[str]] = {}
    for host, python in looks:
        if python.lack is not None:
            hosts.setdefault(python.lack, set()).add(host)
    if not hosts:
        return None
    return SessionError(
        "; ".join(
            f"{names_of(sorted(on))} {'has' if len(on) == 1 else 'have'} {lack}"
            for lack, on in sorted(hosts.items())
        ),
        hint=f"install there Python {_HERE} with what Nilometer depends on: "
        "pip install 'nilometer[server]'; or name another interpreter by PYSPARK_PYTHON",
    )


def explain_worker(text: str) -> SessionError | None:
    """The same sentence for a failure of a task, if the Python of its machine is to blame."""
    machine, python = _MACHINE.search(text), _blamed(text)
    if python is None:
        return None
    error = describe_lacks([("an executor" if machine is None else machine[1], python)])
    if error is not None and machine is None:
        error.detail = "which one stands in the log of Spark, where a task was lost"
    return error


def _blamed(text: str) -> WorkerPython | None:
    if version := _VERSION.search(text):
        return WorkerPython(version[1])
    if _NO_PYTHON.search(text):
        return WorkerPython(None)
    names = [one[1].lower() for one in (each.search(text) for each in _MISSING) if one is not None]
    packages = {**_NEEDED, "google": "protobuf", "protobuf": "protobuf"}
    missing = next((packages[one] for one in names if one in packages), None)
    if missing is None:
        return None
    interpreter = _INTERPRETER.search(text)
    return WorkerPython(_HERE, (missing,), "its Python" if interpreter is None else interpreter[1])
