"""The demo needs nothing but the package: it runs from a wheel, far from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.limit(600)
def test_the_demo_runs_from_a_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    ZipFile(next(tmp_path.glob("*.whl"))).extractall(installed)
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "nilometer", "demo", "--seconds", "15"],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(elsewhere.iterdir())
