"""What deploy/ says agrees with what the command, the server and this repository have."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from nilometer.cli import app
from nilometer.commands.serve import _END_SECONDS
from nilometer.server.config import read_config
from nilometer.server.notify import notify
from nilometer.server.settings import ServerSettings
from tests.patience import LONG
from tests.soak_programs import soak_program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
STOP_SECONDS = ServerSettings().stop_seconds + _END_SECONDS


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "nilometer.service")
    return parser


def instructions() -> list[tuple[str, str]]:
    """What a Dockerfile does: words in capitals, and what follows."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [(one.split()[0], one.split(maxsplit=1)[1]) for one in lines if one.strip()]


def require_known(words: list[str]) -> None:
    """Every option that is given to the command is one that it has."""
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    known = {one for parameter in serve.params for one in parameter.opts}
    assert words[0] == "serve"
    assert {one for one in words if one.startswith("--")} <= known


def test_the_unit_runs_what_there_is_and_stops_in_time() -> None:
    service = unit()["Service"]
    words = shlex.split(service["ExecStart"])
    assert words[0].endswith("/nilometer")
    require_known(words[1:])
    assert float(service["TimeoutStopSec"]) > 2 * STOP_SECONDS
    assert (service["Type"], service["Restart"]) == ("notify", "on-failure")
    for name in ("NoNewPrivileges", "PrivateTmp", "ProtectHome"):
        assert service[name] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "nilometer.service").read_text()
    copy = tmp_path / "nilometer.service"
    copy.write_text(text.replace("/opt/nilometer/bin/nilometer", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_configuration_can_be_read() -> None:
    assert read_config(DEPLOY / "nilometer.toml").log.format == "json"


def test_the_container_copies_what_there_is() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [one[1:] for one in ignored if one.startswith("!")]
    for word, rest in instructions():
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in kept


def test_the_container_runs_what_there_is_as_nobody_special() -> None:
    steps = instructions()
    require_known(json.loads(dict(steps)["CMD"]))
    words = [word for word, _ in steps]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(steps)["USER"] != "root"
    assert json.loads(dict(steps)["ENTRYPOINT"])[-1].endswith("/nilometer")
    check = dict(steps)["HEALTHCHECK"]
    code = json.loads(check[check.index("[") :])[-1]
    compile(code, "HEALTHCHECK", "exec")
    assert f":{ServerSettings().port}/ready" in code
    assert str(ServerSettings().port) == dict(steps)["EXPOSE"]


@pytest.mark.soak
def test_the_linter_of_dockerfiles_is_content() -> None:
    """But for DL3008: a Debian release changes little, and its mirrors keep no old versions."""
    command = [soak_program("hadolint"), "--ignore", "DL3008", DEPLOY / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        listening.settimeout(LONG)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        assert notify("READY=1", "STATUS=serving")
        assert listening.recv(100) == b"READY=1\nSTATUS=serving"
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    assert not notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert not notify("READY=1")
