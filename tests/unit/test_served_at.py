"""Whom to ask for a database that is in use: its server says so, and only its word counts."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from nilometer.commands.server_access import Server, find_asked, read_token
from nilometer.database.home import Home
from nilometer.errors import InputError, InUseError
from nilometer.model.served_at import SERVER_FILE, ServedAt, announced_at, find_server, holder_of

ADDRESS = "http://127.0.0.1:8642"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "plant"


def open_home(folder: Path) -> Home:
    return Home(folder, None, None, lambda rows, where: set())


def asked(folder: Path, **options: Path) -> Server | None:
    return find_asked(None, options.get("token"), options.get("ca"), folder, lambda _: None, "sql")


def test_a_server_is_found_while_it_has_the_folder(folder: Path) -> None:
    assert find_server(folder) is None
    home = open_home(folder)
    assert find_server(folder) is None  # no server, but a program
    with announced_at(folder, "https://0.0.0.0:8642"):
        server = find_server(folder)
        assert server is not None
        assert (server.address, server.pid) == ("https://127.0.0.1:8642", os.getpid())
        assert (folder / SERVER_FILE).stat().st_mode & 0o777 == 0o600
    assert not (folder / SERVER_FILE).exists()
    with announced_at(folder, ADDRESS):
        home.close()
        assert find_server(folder) is None  # killed: what it wrote does not count
        assert holder_of(folder) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"address": "http://127.0.0.1:1"}',
        '{"address": 7, "pid": PID, "host": "HOST"}',
        '{"address": "file:///etc/passwd", "pid": PID, "host": "HOST"}',
        '{"address": "http://", "pid": PID, "host": "HOST"}',
        '{"address": "http://[", "pid": PID, "host": "HOST"}',
        '{"address": "http://x\\u001b[2J", "pid": PID, "host": "HOST"}',
        '{"address": "http://127.0.0.1:1", "pid": 1, "host": "HOST"}',
        '{"address": "http://127.0.0.1:1", "pid": PID, "host": "elsewhere"}',
    ],
)
def test_what_makes_no_sense_is_not_believed(folder: Path, content: str) -> None:
    home = open_home(folder)
    host = os.uname().nodename
    text = content.replace("PID", str(os.getpid())).replace("HOST", host)
    file = folder / SERVER_FILE
    file.write_text(text)
    file.chmod(0o600)
    assert find_server(folder) is None
    home.close()


def test_a_file_that_others_can_write_is_not_believed(folder: Path) -> None:
    home = open_home(folder)
    with announced_at(folder, ADDRESS):
        file = folder / SERVER_FILE
        assert find_server(folder) is not None
        file.chmod(0o622)
        assert find_server(folder) is None
        file.chmod(0o600)
        file.rename(folder / "elsewhere.json")
        file.symlink_to("elsewhere.json")
        assert find_server(folder) is None
        file.unlink()
        (folder / "elsewhere.json").rename(file)
        assert find_server(folder) == ServedAt(**json.loads(file.read_text()))
    home.close()


def test_the_error_says_how_to_ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NILOMETER_TOKEN", raising=False)
    home = open_home(folder)
    with pytest.raises(InUseError, match="is in use") as caught:
        asked(folder)
    assert "close it there" in str(caught.value)
    with announced_at(folder, ADDRESS):
        with pytest.raises(InUseError) as caught:
            asked(folder)
        assert f"NILOMETER_TOKEN=… nilometer sql --server {ADDRESS}" in str(caught.value)
        assert "nilometer tokens create" in str(caught.value)
        monkeypatch.setenv("NILOMETER_TOKEN", " nm_secret \n")
        server = asked(folder)
        assert server == Server(ADDRESS, "nm_secret")
        assert "nm_secret" not in repr(server)
    home.close()
    assert asked(folder) is None


def test_a_look_does_not_keep_others_out(folder: Path) -> None:
    open_home(folder).close()
    lock = os.open(folder / "lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    threading.Timer(0.03, lambda: os.close(lock)).start()
    open_home(folder).close()


@pytest.mark.parametrize(
    ("content", "mode", "refusal"),
    [
        (b"nm_x\n", 0o600, None),
        (b"nm_x\n", 0o640, "other users can read"),
        (b"", 0o600, "there is no token"),
        (b"nm_x nm_y", 0o600, "there is no token"),
        (b"nm_\x1bx", 0o600, "there is no token"),
        (b"\xff\xfe", 0o600, "there is no token"),
        (None, 0o600, "cannot read the token"),
    ],
)
def test_token_files(tmp_path: Path, content: bytes | None, mode: int, refusal: str | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    if refusal is None:
        assert read_token(file) == "nm_x"
        return
    with pytest.raises(InputError, match=refusal):
        read_token(file)


def test_options_of_a_server_without_one(tmp_path: Path) -> None:
    for option in ("token", "ca"):
        with pytest.raises(InputError, match="is for a server"):
            asked(tmp_path, **{option: tmp_path})
    with pytest.raises(InputError, match="do not go together"):
        find_asked(ADDRESS, None, None, tmp_path, lambda _: None, "sql")
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    with pytest.raises(InputError, match="cannot read the certificates"):
        Server(ADDRESS, ca=broken).open()


@pytest.mark.parametrize(
    ("url", "is_warned"),
    [(ADDRESS, False), ("http://[::1]:1", False), ("https://far:1", False), ("http://far", True)],
)
def test_a_token_in_the_clear_is_reported(url: str, is_warned: bool) -> None:
    assert (Server(url, "nm_x").warning is not None) is is_warned
    assert Server(url).warning is None
