"""The shell and the commands at a real server, on a terminal of the test's own."""

from __future__ import annotations

import os
import pty
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.patience import LONG, wait_for
from tests.server_at_work import ServerAtWork, server_at_work

ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'nilometer', *sys.argv[1:]])"
)
"""Makes the terminal that it is given its own, so that Ctrl-C reaches it."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
HOSTILE = "\x1b]0;owned\x07"


class TerminalAtWork:
    """A command on a terminal, and everything that it has shown."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._shown = bytearray()
        self._mark = 0
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def raw(self) -> str:
        return self._shown.decode(errors="replace")

    @property
    def text(self) -> str:
        """What was shown, without colours and moves of the cursor."""
        return ESCAPES.sub("", self.raw)

    def wait_for(self, pattern: str) -> str:
        """Wait until something new is shown that looks so."""

        def match_in_text() -> re.Match[str] | None:
            return re.compile(pattern, re.DOTALL).search(self.text, self._mark)

        match = wait_for(
            match_in_text, said=lambda: f"{pattern!r} was not shown in {self.text[-3000:]}"
        )
        self._mark = match.end()
        return str(match[0])

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def enter(self, text: str, pattern: str) -> str:
        """Type a statement, and wait until something is shown for it."""
        self.wait_for("nilometer>")
        self.type(text + "\r")
        return self.wait_for(pattern)

    def _read(self) -> None:
        with suppress(OSError):  # the other side has gone
            while data := os.read(self._master, 1 << 16):
                self._shown += data


@contextmanager
def on_terminal(arguments: list[str], env: dict[str, str]) -> Iterator[TerminalAtWork]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "120", **env},
    )
    os.close(slave)
    try:
        yield TerminalAtWork(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nilometer", *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=LONG,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_a_database_in_use_is_asked_by_way_of_its_server(tmp_path: Path) -> None:
    with server_at_work(tmp_path / "plant") as server:
        check_commands(server)
        check_shell(server, tmp_path)


def check_commands(server: ServerAtWork) -> None:
    folder, token = str(server.folder), {"NILOMETER_TOKEN": server.tokens["admin"]}
    refused = run("sql", "--db", folder, "SHOW STREAMS", env={"NILOMETER_TOKEN": ""})
    assert refused.returncode == 1
    assert f"nilometer sql --server {server.url}" in refused.stderr
    made = run("sql", "--db", folder, "CREATE TABLE T (s STRING)", env=token)
    assert made.stdout == "created table T\n", made.stderr
    assert f"asking the server at {server.url}" in made.stderr
    failed = run("sql", "--server", server.url, "SELECT s\nFROM Tt", env=token)
    assert "line 2, column 6" in failed.stderr
    assert "did you mean T?" in failed.stderr
    listed = run("sensors", "list", "--server", server.url, env=token)
    assert f"read by the server at {server.url}" in listed.stdout


def check_shell(server: ServerAtWork, folder: Path) -> None:
    history = folder / "history"
    env = {"NILOMETER_TOKEN": server.tokens["admin"], "NILOMETER_HISTORY": str(history)}
    with on_terminal(["shell", "--server", server.url], env) as shown:
        shown.wait_for(r"1 table \(\\d lists them\)")
        values = "rate = 50, values = 'k=counter(0,1)'"
        shown.enter(f"CREATE STREAM A (k BIGINT) FROM synthetic WITH ({values});", "created stream")
        hostile = "char(27) || ']0;owned' || char(7)"  # Escape itself would be a key
        shown.enter(f"INSERT INTO T VALUES ({hostile});", "inserted 1 row")
        shown.enter("SELECT s\rFROM T;", r"\\x1b\]0;owned\\x07.*1 row")
        shown.enter("SELECT k FROM A [RANGE 1 SECOND];", r"\d{4}-\d\d-\d\d.*\d{4}-\d\d-\d\d")
        shown.type("\x03")
        shown.wait_for("rows: ")
        shown.enter("SELECT nothing FROM T;", r"\^\^\^\^\^\^\^")
        shown.enter("SELECT 'password = x' AS s;", "1 row")
        wait_for(lambda: not server.sql("SHOW QUERIES")["rows"])  # the temporary one was dropped
        shown.wait_for("nilometer>")
        shown.type("\x04")
        assert shown.process.wait(LONG) == 0
        assert HOSTILE not in shown.raw
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "SELECT nothing FROM T;" in history.read_text()
    assert "password" not in history.read_text()
