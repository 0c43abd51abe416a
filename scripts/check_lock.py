"""Checks that everything in a lock installs from wheels wherever Nilometer is supported.

    check_lock.py FOLDER                  checks the lock files in a folder, without a network
    check_lock.py FOLDER --write PYLOCK   first writes wheels.txt there, from files pylock.toml

wheels.txt lists the file that each supported machine installs: its SHA-256, its name.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

ARCHITECTURES = ("x86_64", "aarch64")
PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
NEWEST_GLIBC = 36  # Debian 12's
FROM_SOURCE = {"pyspark"}  # published as an sdist alone, and pure Python
LIST = "wheels.txt"

Offers = defaultdict[tuple[str, Version], list["File"]]
"""The files of each package and version."""


@dataclass(frozen=True)
class File:
    """A file that an index offers."""

    name: str
    digest: str

    @property
    def is_wheel(self) -> bool:
        return self.name.endswith(".whl")

    @property
    def project(self) -> tuple[str, Version]:
        if self.is_wheel:
            name, version, *_ = parse_wheel_filename(self.name)
        else:
            name, version = parse_sdist_filename(self.name)
        return name, version

    @property
    def tags(self) -> frozenset[Tag]:
        return parse_wheel_filename(self.name)[3] if self.is_wheel else frozenset()


@dataclass(frozen=True)
class Machine:
    """A Python on a processor, with Debian 12's C library or a later one."""

    architecture: str
    python: tuple[int, int]

    def __str__(self) -> str:
        return f"Python {self.python[0]}.{self.python[1]} on {self.architecture}"

    @cached_property
    def ranks(self) -> dict[Tag, int]:
        """What its pip installs, the best first."""
        levels = [f"manylinux_2_{minor}" for minor in range(NEWEST_GLIBC, 4, -1)]
        levels += ["manylinux2014", "manylinux2010", "manylinux1", "linux"]
        platforms = [f"{level}_{self.architecture}" for level in levels]
        interpreter = f"cp{self.python[0]}{self.python[1]}"
        tags = [
            *cpython_tags(self.python, platforms=platforms),
            *compatible_tags(self.python, interpreter, platforms),
        ]
        return {tag: place for place, tag in reversed(list(enumerate(tags)))}

    def wants(self, marker: Marker | None) -> bool:
        version = ".".join(map(str, self.python))
        return marker is None or marker.evaluate(
            {
                "implementation_name": "cpython",
                "os_name": "posix",
                "platform_machine": self.architecture,
                "platform_python_implementation": "CPython",
                "platform_system": "Linux",
                "python_full_version": f"{version}.0",
                "python_version": version,
                "sys_platform": "linux",
            }
        )

    def choose(self, files: Iterable[File]) -> File | None:
        """The wheel that is installed, if there is one."""
        rank = self.ranks
        best = len(rank)
        found = None
        for file in files:
            place = min((rank[tag] for tag in file.tags if tag in rank), default=best)
            if place < best:
                best, found = place, file
        return found


MACHINES = tuple(Machine(one, python) for one in ARCHITECTURES for python in PYTHONS)


@dataclass(frozen=True)
class Pin:
    """A line of a lock: one version of a package, and the files that it may be."""

    requirement: Requirement
    digests: frozenset[str]

    @property
    def project(self) -> tuple[str, Version]:
        (version,) = self.requirement.specifier
        return canonicalize_name(self.requirement.name), Version(version.version)


def read_lock(path: Path) -> Iterator[Pin]:
    """The pins of a requirements file with hashes."""
    for line in path.read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            digests = frozenset(re.findall(r"--hash=sha256:(\w+)", line))
            yield Pin(Requirement(line.split(" --hash")[0].strip()), digests)


def read_list(path: Path) -> list[File]:
    """The files in wheels.txt."""
    rows = (line.split() for line in path.read_text().splitlines())
    return [File(name, digest) for digest, name in rows]


def read_pylock(path: Path) -> list[File]:
    """All files that a pylock.toml names."""
    found = []
    for package in tomllib.loads(path.read_text())["packages"]:
        offered = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        for file in offered:
            name = file["url"].rsplit("/", 1)[1]
            found.append(File(name, file["hashes"]["sha256"]))
    return found


def group(files: Iterable[File]) -> Offers:
    """Files by package and version."""
    found: Offers = defaultdict(list)
    for file in files:
        found[file.project].append(file)
    return found


def choose_files(pins: Iterable[Pin], offers: Offers) -> list[File]:
    """What the supported machines install of a lock, as far as it is offered."""
    chosen: set[File] = set()
    for pin in pins:
        offered = offers[pin.project]
        if pin.project[0] in FROM_SOURCE:
            chosen.update(file for file in offered if not file.is_wheel)
        found = (one.choose(offered) for one in MACHINES if one.wants(pin.requirement.marker))
        chosen.update(filter(None, found))
    return sorted(chosen, key=lambda file: file.name.lower())


def problems(lock: str, pins: Iterable[Pin], offers: Offers) -> Iterator[str]:
    """What does not install, and where."""
    for pin in pins:
        name, version = pin.project
        offered = offers[pin.project]
        if name in FROM_SOURCE:
            if not any(file.digest in pin.digests for file in offered if not file.is_wheel):
                yield f"{lock}: {name} {version} has no source whose hash is in the lock"
            continue
        wheels = {one: one.choose(offered) for one in MACHINES if one.wants(pin.requirement.marker)}
        if lacking := [str(machine) for machine, wheel in wheels.items() if wheel is None]:
            yield f"{lock}: {name} {version} has no wheel for {', '.join(lacking)}"
        for wheel in sorted(
            {
                wheel.name
                for wheel in wheels.values()
                if wheel is not None and wheel.digest not in pin.digests
            }
        ):
            yield f"{lock}: the hash of {wheel} is not in the lock"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, nargs="+", metavar="PYLOCK")
    options = parser.parse_args()
    locks = {
        path.name: list(read_lock(path))
        for path in options.folder.glob("*.txt")
        if path.name != LIST
    }
    if options.write:
        pins = [pin for lock in locks.values() for pin in lock]
        offered = (file for one in options.write for file in read_pylock(one))
        files = choose_files(pins, group(offered))
        lines = (f"{file.digest} {file.name}\n" for file in files)
        (options.folder / LIST).write_text("".join(lines))
    offers = group(read_list(options.folder / LIST))
    found = [one for name, pins in sorted(locks.items()) for one in problems(name, pins, offers)]
    if not locks or not all(locks.values()):
        found.append(f"{options.folder} has no lock, or an empty one")
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
