"""The demo ends as a whole, whoever ends it, and without a word of its processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import LONG, wait_for

_PROGRAM = """
import sys, time
from pathlib import Path
from nilometer.demo.broker import broker_at_work
from nilometer.demo.cameras.cameras import cameras_at_work
from nilometer.demo.ending import ends_like_ctrl_c

try:
    with (
        ends_like_ctrl_c(),
        broker_at_work(Path(sys.argv[1])),
        cameras_at_work(10, 0, "1,2,3,4", None, "") as cameras,
    ):
        cameras.begin()
        print(cameras.port, flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    print("ended", flush=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_its_processes_end_with_it_and_say_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert demo.stdout is not None
    assert int(demo.stdout.readline())
    os.killpg(demo.pid, ending)  # as a terminal does: all of its processes get it
    said, errors = demo.communicate(timeout=LONG)
    assert (said, errors, demo.returncode) == ("ended\n", "", 0)
    wait_for(lambda: not _processes_with(str(tmp_path)))


def _processes_with(text: str) -> list[str]:
    environments = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            environments.append(one.read_bytes().decode(errors="replace"))
        except OSError:  # it has ended meanwhile
            continue
    return [one for one in environments if text in one]
