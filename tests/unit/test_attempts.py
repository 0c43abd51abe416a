"""Every attempt of a task writes the same state, so that it does not matter which one wrote last.

Spark runs a task again elsewhere while the first attempt may still be at work: on a machine that
was cut off for a while, or because it was slow (`spark.speculation`). Both write the same files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.hosted_attempt import QUERIES


def test_every_attempt_of_a_task_writes_the_same_state() -> None:
    """Whatever the order in which envelopes come, and in which Python has its sets."""
    attempts = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.hosted_attempt", seed],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    one, other = (_digests(attempt) for attempt in attempts)
    assert list(one) == list(QUERIES)
    assert one == other


def _digests(attempt: subprocess.Popen[bytes]) -> dict[str, Any]:
    output, _ = attempt.communicate()
    assert attempt.returncode == 0
    digests: dict[str, Any] = json.loads(output)
    return digests
