"""The Python processes that Spark starts: forked on the driver, and quick to load PySpark."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from nilometer.spark.fork_server import python_command

_PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_PYTHON: Final = "nilometer-python"
_ON_EXECUTORS: Final = "python3"


@contextmanager
def forked_python() -> Iterator[None]:
    """Make Spark get its Python processes from the fork server, unless configured otherwise."""
    keys = [key for key in _PYTHONS if _is_this_python(os.environ.get(key))]
    before = {key: os.environ[key] for key in keys if key in os.environ}
    os.environ.update({key: python_command() for key in keys})
    try:
        yield
    finally:
        for key in keys:
            del os.environ[key]
        os.environ.update(before)


@dataclass(frozen=True)
class Pythons:
    """What Spark starts as Python, by the same name on all machines of a cluster."""

    driver: Path
    """The folder where Java starts: its Python processes come from the fork server."""
    executors: Path
    """The file for executors."""


@contextmanager
def pythons_of_cluster(scratch: Path) -> Iterator[Pythons]:
    """Make Spark fork its Python processes on the driver of a cluster, and start others elsewhere.

    Spark knows one name for all of them, and gives a process ten seconds to start: on a busy driver
    it may take as long to load everything. So the name is that of a file in the working folder, to
    which Spark brings the executors' one. If no interpreter is named, the driver uses its own, also
    that of a virtual environment that is not activated, and executors use `python3`.
    """
    pythons = Pythons(scratch / "driver", scratch / "executors" / _PYTHON)
    wanted = os.environ.get(_PYTHONS[0])
    driver = python_command() if _is_this_python(wanted) else _from_here(wanted or "")
    elsewhere = wanted or _ON_EXECUTORS
    for folder, command in ((pythons.driver, driver), (pythons.executors.parent, elsewhere)):
        folder.mkdir()
        (folder / _PYTHON).write_text(f'#!/bin/sh\nexec {shlex.quote(command)} "$@"\n')
        (folder / _PYTHON).chmod(0o700)
    before = {key: os.environ.pop(key, None) for key in _PYTHONS}
    os.environ[_PYTHONS[0]] = f"./{_PYTHON}"
    try:
        yield pythons
    finally:
        del os.environ[_PYTHONS[0]]
        os.environ.update({key: value for key, value in before.items() if value is not None})


def _from_here(command: str) -> str:
    """A command that Java can start from another folder."""
    return os.path.abspath(command) if os.sep in command else command


def relative_to_here() -> str:
    """The option that has Java take relative paths from here, wherever it is started."""
    return f"-Duser.dir={shlex.quote(os.getcwd())}"


def _is_this_python(name: str | None) -> bool:
    """Whether a command is this interpreter, or none is set."""
    path = shutil.which(name or sys.executable)
    return path is not None and (
        Path(path).parent == Path(sys.executable).parent and Path(path).samefile(sys.executable)
    )


@contextmanager
def spark_home(scratch: Path) -> Iterator[None]:
    """Make Spark start from a copy of PySpark's folder without its zipped Python sources.

    Workers look for PySpark in that zip first and compile it again in every process; without it
    they find the installed one, which is compiled already. That saves a second per query.
    """
    if "SPARK_HOME" in os.environ:
        yield
        return
    home = scratch / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]
