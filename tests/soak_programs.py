"""Programs that `make soak` installs in an environment of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import wait_for
from tests.spark_cluster import answers, free_port


def soak_program(name: str) -> Path:
    """The path of a program; skips the test where it is not installed."""
    path = Path(sys.prefix, "soak", "bin", name)
    if not path.exists():
        pytest.skip(f"there is no {name} here: scripts/set_up.sh soak installs it")
    return path


@contextmanager
def moto_server() -> Iterator[str]:
    """Another store that speaks S3: the options that belong after a URI's `?`."""
    program, port = soak_program("moto_server"), free_port()
    with subprocess.Popen(
        [program, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            wait_for(lambda: answers(port), alive=lambda: server.poll() is None)
            options = "scheme=http&region=us-east-1&allow_bucket_creation=true"
            yield f"endpoint_override=127.0.0.1:{port}&{options}"
        finally:
            server.terminate()
