"""A process that has loaded what Spark's Python processes need, and forks them.

Spark starts a Python process for each kind of worker and two for each streaming query, most of
them one after the other before the first micro-batch. Each would load PySpark, Arrow and our own
modules again. Here they are loaded once, while Java starts, and shared: to Spark, Python is the
script that `python_command` writes; it asks the fork server for a process (see `launch`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

_LOADED: Final = (
    "pandas",
    "pyspark.worker",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "nilometer.spark.engine_source",
    "nilometer.spark.host",
    "nilometer.spark.log_envelopes",
    "nilometer.spark.log_rows",
    "nilometer.spark.result_log",
    "nilometer.local.sensor_filter",
)
_LIKE_SPARK: Final = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
"""Variables that Spark sets for its workers by default, and that are read only once."""
_LONGEST_ADDRESS: Final = 100
"""The longest address of a Unix socket, in bytes, on all systems."""
_REQUEST_SECONDS: Final = 10.0
_MOST_REQUEST_BYTES: Final = 64 << 20


@lru_cache(maxsize=1)
def python_command() -> str:
    """Start the server, and return what Spark must start as Python instead of the interpreter.

    The server, and everything that it has forked, ends with this process.
    """
    folder = Path(tempfile.mkdtemp(prefix="nilometer-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = folder / "forks"
    if os.name != "posix" or len(os.fsencode(address)) > _LONGEST_ADDRESS:
        return sys.executable
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(128)
        _start(listening)
    launch = Path(__file__).with_name("launch.py")
    parts = (sys.executable, "-I", "-S", str(launch), str(address), sys.executable)
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(parts)} "$@"\n')
    command.chmod(0o700)
    return str(command)


def _start(listening: socket.socket) -> None:
    number = listening.fileno()
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, str(number)],
        stdin=subprocess.PIPE,  # which is closed when this process ends, however it ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_LIKE_SPARK | os.environ,
        pass_fds=(number,),
    )
    assert server.stdin is not None
    atexit.register(_end, server)


def _end(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait()


@dataclass(frozen=True)
class Request:
    """A process that Spark requests: its arguments and environment are those of the launcher."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    niceness: int
    files: list[int]
    """Descriptors of standard input, output and error."""


def read_request(client: socket.socket) -> Request:
    """Read what a launcher has sent; raises if it is not a whole request."""
    client.settimeout(_REQUEST_SECONDS)
    head, files, _, _ = socket.recv_fds(client, 4, 3)
    try:
        size = int.from_bytes(head, "big")
        if len(head) != 4 or len(files) != 3 or size > _MOST_REQUEST_BYTES:
            raise ValueError("not a request")
        with client.makefile("rb") as stream:
            content: dict[str, Any] = json.loads(stream.read(size))
        option, module, *arguments = content["arguments"]
        if option != "-m":
            raise ValueError(f"not a module: {option}")
        return Request(
            module,
            arguments,
            content["environment"],
            content["folder"],
            content["niceness"],
            list(files),
        )
    except BaseException:
        _close(files)
        raise
    finally:
        client.settimeout(None)


class ForkServer:
    """Forks a process for each launcher, and reports its exit to the launcher.

    When a launcher ends, so does its process; when the input ends, so do all of them.
    """

    def __init__(self, listening: socket.socket, owner: BinaryIO) -> None:
        self._listening = listening
        self._owner = owner
        self._clients: dict[int, socket.socket] = {}
        """The launchers by process id."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()

    def run(self) -> None:
        """Serve until the owner has ended."""
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for one in (self._listening, self._owner, self._woken):
            self._selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._owner:
                    self._end_all()
                    return
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._reap()
                else:
                    self._end(key.data)

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        try:
            request = read_request(client)
        except (OSError, ValueError, KeyError, TypeError):
            client.close()
            return
        number = os.fork()
        if number == 0:
            self._become(request, client)
        _close(request.files)
        self._clients[number] = client
        self._selector.register(client, selectors.EVENT_READ, number)

    def _reap(self) -> None:
        """Notify launchers of processes that have ended."""
        while self._woken_again():
            pass
        while self._clients:
            number, status = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            client = self._forget(number)
            if client is not None:
                _tell(client, code if code >= 0 else 128 - code)

    def _woken_again(self) -> bool:
        try:
            return bool(self._woken.recv(4096))
        except BlockingIOError:
            return False

    def _end(self, number: int) -> None:
        """End the process of a launcher that has ended."""
        client = self._clients.get(number)
        if client is not None:
            self._selector.unregister(client)
            client.close()
            os.kill(number, signal.SIGTERM)

    def _end_all(self) -> None:
        for number in self._clients:
            os.kill(number, signal.SIGTERM)

    def _forget(self, number: int) -> socket.socket | None:
        """Remove and return the launcher of a process, if it still waits."""
        client = self._clients.pop(number, None)
        if client is None or client.fileno() < 0:
            return None
        self._selector.unregister(client)
        return client

    def _become(self, request: Request, client: socket.socket) -> NoReturn:
        """Become the requested process."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for one in (self._listening, self._woken, self._waker, *self._clients.values(), client):
                one.close()
            _surround(request)
            code = _run(request.module, request.arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code)


def _surround(request: Request) -> None:
    """Give the process the files, the working folder and the environment of its launcher."""
    for place, file in enumerate(request.files):
        os.dup2(file, place)
    _close(request.files)
    os.chdir(request.folder)
    own = set(_search_path(os.environ))
    os.environ.clear()
    os.environ.update(request.environment)
    installed = [path for path in sys.path if path and path not in own]
    sys.path[:] = [request.folder, *_search_path(os.environ), *installed]
    if request.niceness > os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, request.niceness)


def _search_path(environment: os._Environ[str]) -> list[str]:
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def _run(module: str, arguments: list[str]) -> int:
    """Run a module as `python -m` does; its exit code."""
    sys.argv = [module, *arguments]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that it has been imported before
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    return 0


def _tell(client: socket.socket, code: int) -> None:
    with client:
        try:
            client.sendall(bytes([code & 0xFF]))
        except OSError:  # the launcher has ended, too
            return


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def main(number: int) -> None:
    """Load everything, then serve at a socket that the starting process has opened."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started Spark
    for module in _LOADED:
        try:
            importlib.import_module(module)
        except ImportError:  # of another Spark: those that need it will raise
            continue
    # A worker collects garbage after every task. What is loaded here never becomes garbage, and
    # scanning it each time took longer than most tasks' own work.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as listening:
        ForkServer(listening, sys.stdin.buffer).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
