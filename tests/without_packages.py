"""Python programs run as if packages were not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from typing import Any

_BEGINNING = """
import json, sys
for package in json.loads(sys.argv.pop()):
    sys.modules[package] = None
"""


def run_without(packages: Collection[str], code: str) -> Any:
    """The JSON that a program prints in its last line, in a process without the packages."""
    done = subprocess.run(
        [sys.executable, "-c", _BEGINNING + code, json.dumps(sorted(packages))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
