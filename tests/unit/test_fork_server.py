"""Processes that the fork server makes are as those that Python starts, and end as they should."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.patience import LONG, wait_for

pytest.importorskip("pyspark", reason="the fork server loads what Spark's workers need")

_OWNER = """
import sys
from nilometer.spark.fork_server import python_command
print(python_command(), flush=True)
sys.stdin.read()
"""
_STATE = """
import json, os, sys
state = {
    "input": sys.stdin.read(), "arguments": sys.argv[1:], "folder": os.getcwd(),
    "name": __name__, "variable": os.environ.get("GIVEN"), "hash": hash("text"),
    "niceness": os.getpriority(os.PRIO_PROCESS, 0), "path": "pandas" in sys.modules,
}
print(json.dumps(state))
print("an error", file=sys.stderr)
sys.exit(7)
"""
_SLEEPS = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(900)\n"


class Owner:
    """A process as a driver is, with its fork server."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.python = self.process.stdout.readline().strip()

    @property
    def server(self) -> psutil.Process:
        (child,) = psutil.Process(self.process.pid).children()
        return child

    def run(self, *arguments: str, folder: Path, given: str = "", **env: str) -> tuple[str, ...]:
        """Exit code, output and errors of a module."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=folder,
            env=os.environ | env,
            input=given,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        return str(done.returncode), done.stdout, done.stderr

    def start(self, *arguments: str, folder: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
        """A launcher, and the process that says its number first."""
        launcher = subprocess.Popen(
            [self.python, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert launcher.stdout is not None
        return launcher, psutil.Process(int(launcher.stdout.readline()))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def owner() -> Iterator[Owner]:
    made = Owner()
    yield made
    made.end()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "tells.py").write_text(_STATE)
    (tmp_path / "sleeps.py").write_text(_SLEEPS)
    (tmp_path / "fails.py").write_text("raise ValueError('as it should')")
    return tmp_path


def test_a_module_runs_as_python_would_run_it(owner: Owner, modules: Path) -> None:
    nice = f"import os; os.setpriority(os.PRIO_PROCESS, 0, 3); os.execv({owner.python!r}, "
    nice += f"[{owner.python!r}, '-m', 'tells', 'an argument', '-x'])"
    done = subprocess.run(
        [sys.executable, "-c", nice],
        cwd=modules,
        env=os.environ | {"GIVEN": "wörd"},
        input="some input",
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "an error\n")
    reply = json.loads(done.stdout)
    plain = subprocess.run(
        [sys.executable, "-c", "print(hash('text'))"],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert reply == {
        "input": "some input",
        "arguments": ["an argument", "-x"],
        "folder": str(modules),
        "name": "__main__",
        "variable": "wörd",
        "hash": int(plain.stdout),
        "niceness": 3,
        "path": True,
    }


def test_modules_are_found_on_the_path_of_the_launcher(
    owner: Owner, modules: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    code, output, _ = owner.run("-m", "tells", folder=elsewhere, PYTHONPATH=str(modules))
    assert (code, json.loads(output)["folder"]) == ("7", str(elsewhere))
    code, _, errors = owner.run("-m", "tells", folder=elsewhere)
    assert code == "1"
    assert "No module named tells" in errors


def test_an_error_is_shown_as_python_shows_it(owner: Owner, modules: Path) -> None:
    code, _, errors = owner.run("-m", "fails", folder=modules)
    assert code == "1"
    assert errors.endswith("ValueError: as it should\n")


def test_what_is_no_module_is_run_by_python_itself(owner: Owner, modules: Path) -> None:
    assert owner.run("-c", "print(1 + 1)", folder=modules) == ("0", "2\n", "")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_ends_with_its_launcher(owner: Owner, modules: Path, how: signal.Signals) -> None:
    launcher, process = owner.start("-m", "sleeps", folder=modules)
    launcher.send_signal(how)
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    launcher.communicate()


def test_a_launcher_ends_with_its_process(owner: Owner, modules: Path) -> None:
    launcher, process = owner.start("-m", "sleeps", folder=modules)
    process.kill()
    assert launcher.wait(LONG) == 128 + signal.SIGKILL
    launcher.communicate()


def test_what_is_no_request_is_forgotten(owner: Owner, modules: Path) -> None:
    address = str(Path(owner.python).with_name("forks"))
    for sent in (
        b"",
        b"\x00",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02{}",
        b"\x00\x00\x00\x09not json!",
    ):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            if sent:
                socket.send_fds(client, [sent[:4]], [1, 1, 1])
                with suppress(OSError):  # it has been forgotten already
                    client.sendall(sent[4:])
    assert owner.run("-c", "pass", folder=modules)[0] == "0"
    assert owner.run("-m", "tells", folder=modules)[0] == "7"
    assert owner.server.num_fds() < 30


def test_everything_ends_with_the_owner_and_python_starts_without_it(modules: Path) -> None:
    owner = Owner()
    launcher, process = owner.start("-m", "sleeps", folder=modules)
    server = owner.server
    owner.end()
    wait_for(lambda: not process.is_running() and not server.is_running())
    launcher.communicate()
    code, output, _ = owner.run("-m", "tells", folder=modules)
    assert (code, json.loads(output)["path"]) == ("7", False)
