"""The lock installs from wheels on every supported machine, and what does not is named."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "requirements"


def check(folder: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "scripts" / "check_lock.py"), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    folder = tmp_path / "requirements"
    shutil.copytree(LOCKS, folder)
    return folder


def leave_out(file: Path, *words: str) -> list[str]:
    """Remove the lines that have all of these words."""
    lines = file.read_text().splitlines(keepends=True)
    left = [line for line in lines if any(word not in line for word in words)]
    file.write_text("".join(left))
    return [line for line in lines if line not in left]


def test_everything_installs_everywhere(locks: Path) -> None:
    assert check(locks) == (0, "")


def test_a_package_without_a_wheel_for_an_architecture_is_named(locks: Path) -> None:
    assert leave_out(locks / "wheels.txt", "numpy-", "aarch64", "cp313")
    code, said = check(locks)
    assert code == 1
    lines = said.splitlines()
    assert [line.split(":")[0] for line in lines] == ["demo.txt", "dev.txt", "mining.txt"]
    for line in lines:
        assert re.search(r": numpy [\d.]+ has no wheel for Python 3.13 on aarch64$", line)


def test_a_wheel_whose_hash_is_not_in_the_lock_is_named(locks: Path) -> None:
    wheels = (locks / "wheels.txt").read_text().splitlines()
    digest, name = next(line for line in wheels if " rich-" in line).split()
    assert leave_out(locks / "demo.txt", digest)
    code, said = check(locks)
    assert (code, said) == (1, f"demo.txt: the hash of {name} is not in the lock\n")


def test_spark_is_built_from_its_source(locks: Path) -> None:
    assert leave_out(locks / "wheels.txt", "pyspark-")
    code, said = check(locks)
    assert code == 1
    assert "pyspark 4" in said
    assert "has no source whose hash is in the lock" in said


def test_an_empty_lock_is_an_error(locks: Path, tmp_path: Path) -> None:
    (locks / "demo.txt").write_text("")
    assert check(locks)[0] == 1
    for file in locks.glob("*.txt"):
        if file.name != "wheels.txt":
            file.unlink()
    code, said = check(locks)
    assert (code, "has no lock" in said) == (1, True)


def test_all_locks_have_the_same_versions(locks: Path) -> None:
    pins = {
        file.name: {line.split(" ;")[0].split(" \\")[0] for line in file.read_text().splitlines()
                    if "==" in line and not line.startswith(" ")}
        for file in locks.glob("*.txt")
        if file.name != "wheels.txt"
    }  # fmt: skip
    assert pins["demo.txt"] < pins["mining.txt"] < pins["dev.txt"]
