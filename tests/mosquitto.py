"""A private mosquitto for tests: on a free loopback port, gone when the test is over."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.patience import LONG, wait_for

HOST: Final = "127.0.0.1"
_ATTEMPTS: Final = 5


@dataclass(frozen=True)
class Tls:
    """The certificate files of a broker."""

    authority: Path
    """What clients trust."""
    certificate: Path
    key: Path


@dataclass
class Mosquitto:
    """A broker that can be stopped, killed and started again on the same port."""

    program: str
    folder: Path
    port: int
    settings: tuple[str, ...]
    host: str = HOST
    tls: Tls | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"{'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"

    @property
    def log(self) -> str:
        """The output of the broker so far."""
        file = self.folder / "mosquitto.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self) -> None:
        """Start, and return when connections are accepted."""
        config = self.folder / "mosquitto.conf"
        config.write_text("\n".join(self.settings) + "\n")
        with (self.folder / "mosquitto.log").open("ab") as log:
            command = [self.program, "-c", str(config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for(
                lambda: _accepts(self.port),
                said=lambda: f"mosquitto did not start:\n{self.log}",
                alive=lambda: self.process is not None and self.process.poll() is None,
            )
        except AssertionError as error:
            self.kill()
            raise RuntimeError(error) from None
        # Another program may hold the port: then its connections were seen, not the broker's.
        if self.process.poll() is not None:
            raise RuntimeError(f"mosquitto did not start:\n{self.log}")

    def stop(self) -> None:
        """Shut down cleanly: with persistence, sessions and queued messages are saved."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(LONG)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process = None

    def kill(self) -> None:
        """End at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def __enter__(self) -> Mosquitto:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_mosquitto(
    folder: Path,
    *,
    persistence: bool = False,
    passwords: Mapping[str, str] | None = None,
    tls: Tls | None = None,
    settings: tuple[str, ...] = (),
) -> Mosquitto:
    """A running broker whose files are in the folder; skips the test if mosquitto is missing.

    `passwords` are those of the users: nobody else may connect then. `settings` are further lines
    of mosquitto.conf. Queues are unbounded, so a message is lost only if the broker loses it.
    """
    program = _program("mosquitto")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        *_user(),
        "max_queued_messages 0",
        *_persistence(folder, persistence),
        *_passwords(folder, passwords),
    ]
    for attempt in range(_ATTEMPTS):
        port = _free_port()
        listener = [f"listener {port} {HOST}", *_tls(tls)]
        broker = Mosquitto(program, folder, port, (*lines, *listener, *settings), tls=tls)
        try:
            broker.start()
        except RuntimeError:
            # The port was free when it was chosen, but may have been taken since.
            if attempt == _ATTEMPTS - 1 or "Address already in use" not in broker.log:
                raise
        else:
            return broker
    raise AssertionError("not reached")


def make_certificates(folder: Path, host: str = HOST) -> Tls:
    """A certificate authority, and the certificate that it issued to the host."""
    openssl = shutil.which("openssl") or _skip("openssl", "openssl")
    folder.mkdir(parents=True, exist_ok=True)
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    request, certificate, key = folder / "broker.csr", folder / "broker.pem", folder / "broker.key"
    extensions = folder / "extensions.cnf"
    kind = "IP" if host[-1].isdecimal() else "DNS"
    extensions.write_text(f"subjectAltName={kind}:{host}\n")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for arguments in (
        ["req", "-x509", *new_key, "-keyout", authority_key, "-out", authority, "-days", "2",
         "-subj", "/CN=tests", "-addext", "keyUsage=critical,keyCertSign"],
        ["req", *new_key, "-keyout", key, "-out", request, "-subj", f"/CN={host}"],
        ["x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key,
         "-CAcreateserial", "-out", certificate, "-days", "2", "-extfile", extensions],
    ):  # fmt: skip
        subprocess.run([openssl, *map(str, arguments)], check=True, capture_output=True)
    return Tls(authority, certificate, key)


def _program(name: str) -> str:
    # Debian installs the broker where only root's PATH leads.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return shutil.which(name, path=path) or _skip(name, "mosquitto")


def _skip(name: str, package: str) -> str:
    pytest.skip(f"{name} is not installed: apt-get install {package}, or make setup as root")


def _user() -> list[str]:
    """Run as root, the broker would otherwise become a user who cannot read the test's folder."""
    return ["user root"] if os.geteuid() == 0 else []


def _persistence(folder: Path, wanted: bool) -> list[str]:
    if not wanted:
        return ["persistence false"]
    return ["persistence true", f"persistence_location {folder}/", "autosave_interval 1"]


def _passwords(folder: Path, passwords: Mapping[str, str] | None) -> list[str]:
    if passwords is None:
        return ["allow_anonymous true"]
    file = folder / "passwords"
    file.write_text("".join(f"{name}:{password}\n" for name, password in passwords.items()))
    file.chmod(0o600)
    subprocess.run([_program("mosquitto_passwd"), "-U", str(file)], check=True)
    return ["allow_anonymous false", f"password_file {file}"]


def _tls(tls: Tls | None) -> list[str]:
    if tls is None:
        return []
    return [f"cafile {tls.authority}", f"certfile {tls.certificate}", f"keyfile {tls.key}"]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False
