"""The runner of the suites: what it says of tests that pass, fail, or fail only beside others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSES = "def test_passes(): pass"
FAILS = "def test_fails(): assert 1 == 2"
ONCE = """def test_once():
    from pathlib import Path
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
"""
DIES = "def test_dies(): import os; os._exit(3)"
BROKEN = "import nothing_that_is_there"


@pytest.mark.parametrize(
    ("tests", "code", "said", "again"),
    [
        ([PASSES, ONCE], 0, ["unit: 1 passed, 0 failed, 1 unsteady", "the first time"], True),
        ([PASSES, DIES, ONCE], 1, ["unit: 1 passed, 1 failed, 1 unsteady"], True),
        ([PASSES, BROKEN], 1, ["unit ended with an error", "nothing_that_is_there"], False),
        ([FAILS.replace("_", f"_{n}_") for n in range(6)], 1, ["0 passed, 6 failed"], False),
    ],
)
def test_what_is_said_of_a_run(
    tmp_path: Path, tests: list[str], code: int, said: list[str], again: bool
) -> None:
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "papers" / "src").mkdir(parents=True)
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tests", "unit"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    for text in said:
        assert text in done.stdout
    assert ("once more, alone" in done.stdout) == again
