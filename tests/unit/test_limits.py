"""A test that hangs or crashes is lost alone, and named; the next ones run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.patience import LONG, Patience, wait_for

ROOT = Path(__file__).parents[2]
_HOOKS = "from tests.limits import pytest_configure, pytest_runtest_protocol\n"
_BEFORE = "def test_before(): pass\n"
_AFTER = "def test_after(): pass\n"
_HANGS = """
import pytest, subprocess, sys, time

@pytest.mark.limit(0.5)
def test_hangs(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
    open("child", "w").write(str(child.pid))
    time.sleep(900)
"""
_CRASHES = "import os\ndef test_crashes(): os._exit(3)\n"


def run(folder: Path, tests: str) -> str:
    (folder / "conftest.py").write_text(_HOOKS)
    (folder / "test_some.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "-q"]
    ended = subprocess.run(
        [*command, "--rootdir", str(folder), "-c", "/dev/null", str(folder)],
        cwd=folder,
        env={"PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_what_hangs_or_crashes_is_lost_alone_and_the_next_ones_run(tmp_path: Path) -> None:
    said = run(tmp_path, _BEFORE + _HANGS + _CRASHES + _AFTER)
    assert re.search(r"crashed while running '.*test_some.py::test_hangs'", said)
    assert "test_some.py::test_hangs took too long; its threads:" in said
    assert 'test_some.py", line' in said, "where it hung"
    assert re.search(r"crashed while running '.*test_some.py::test_crashes'", said)
    assert re.search(r"2 failed, 2 passed", said)
    child = Path("/proc", (tmp_path / "child").read_text())
    wait_for(lambda: not child.exists() or "Z" in (child / "stat").read_text())


def test_seconds_count_for_less_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    now, load = 100.0, 0.0
    machine = SimpleNamespace(getloadavg=lambda: (load, 0.0, 0.0), cpu_count=lambda: 2)
    monkeypatch.setattr("tests.patience.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr("tests.patience.os", machine)
    patience = Patience(10)
    now += 6
    assert not patience.ended
    load = 8.0  # four processes for each core
    now += 15
    assert not patience.ended
    now += 2
    assert patience.ended


def test_what_never_happens_is_given_up() -> None:
    with pytest.raises(AssertionError, match="no rows, still 0"):
        wait_for(lambda: 0, 0.05, said=lambda: "no rows")
    with pytest.raises(AssertionError, match="it has ended"):
        wait_for(lambda: 0, said=lambda: "it has ended", alive=lambda: False)
    assert wait_for(lambda: 7) == 7


@pytest.mark.soak
def test_one_line_for_each_suite(tmp_path: Path) -> None:
    suites = tmp_path / "tests"
    shutil.copytree(ROOT / "tests", suites, ignore=shutil.ignore_patterns("*", "!*"))
    for name in ("__init__.py", "__main__.py", "report_progress.py", "limits.py", "patience.py"):
        shutil.copy(ROOT / "tests" / name, suites / name)
    for name, text in {"unit": _BEFORE + _CRASHES, "browser": _AFTER}.items():
        (suites / name).mkdir()
        (suites / name / f"test_{name}.py").write_text(text)
    (tmp_path / "src").mkdir()
    (tmp_path / "papers" / "src").mkdir(parents=True)
    ended = subprocess.run(
        [sys.executable, "-m", "tests", "unit", "browser"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-2:] == [
        "unit: 1 passed, 1 failed",
        "browser: 1 passed, 0 failed",
    ]
    assert "FAILED tests/unit/test_unit.py::test_crashes" in ended.stdout
    lines = (tmp_path / "build" / "tests" / "browser.jsonl").read_text().splitlines()
    assert sum('"when": "call"' in line for line in lines) == 1, "each test is reported once"
