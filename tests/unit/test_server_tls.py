"""A server with a certificate: the client, the console's cookies, and who speaks without it."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app
from nilometer.errors import UnreachableError
from nilometer.server.console.login import add_login
from nilometer.server.protocol import protocol_for
from nilometer.server.sessions import Sessions
from nilometer.server.settings import ServerSettings
from tests.mosquitto import Tls, make_certificates
from tests.patience import LONG
from tests.served import Served, served


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def listening(folder: Path, tls: Tls) -> Iterator[tuple[Served, int]]:
    """A real server with a certificate, and its port."""
    settings = replace(ServerSettings(), certificate=tls.certificate, key=tls.key)
    with served(folder, settings) as server, socket.create_server(("127.0.0.1", 0)) as bound:
        add_login(server.app, Sessions(server.tokens))
        config = uvicorn.Config(
            server.app,
            http=protocol_for(settings),
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            log_config=None,
            lifespan="off",
        )
        web = uvicorn.Server(config)
        thread = threading.Thread(target=web.run, args=([bound],))
        thread.start()
        try:
            while not web.started:
                time.sleep(0.01)
            yield server, bound.getsockname()[1]
        finally:
            web.should_exit = True
            thread.join(LONG)


def test_a_client_speaks_with_whom_it_trusts(tmp_path: Path, tls: Tls) -> None:
    with listening(tmp_path, tls) as (server, port):
        url, token = f"https://127.0.0.1:{port}", server.secrets["read"]
        with nm.Client(url, token, verify=str(tls.authority)) as client:
            assert client.execute("SHOW TABLES").message == "0 tables"
        with nm.Client(url, token) as client, pytest.raises(UnreachableError):
            client.execute("SHOW TABLES")


def test_commands_speak_with_whom_they_trust(tmp_path: Path, tls: Tls) -> None:
    with listening(tmp_path, tls) as (server, port):
        words = ["sql", "--server", f"https://127.0.0.1:{port}", "SHOW TABLES", "--format=csv"]
        runner = CliRunner(env={"NILOMETER_TOKEN": server.secrets["read"]})
        trusting = runner.invoke(app, [*words, "--ca", str(tls.authority)])
        assert trusting.stdout == "name,kind,rows\n", trusting.exception
        doubting = runner.invoke(app, words).exception
        assert isinstance(doubting, UnreachableError)
        assert "--ca" in str(doubting)


def test_cookies_stay_on_encrypted_connections(tmp_path: Path, tls: Tls) -> None:
    with listening(tmp_path, tls) as (server, port):
        trusted = ssl.create_default_context(cafile=tls.authority)
        answer = httpx.post(
            f"https://127.0.0.1:{port}/login",
            data={"token": server.secrets["read"]},
            verify=trusted,
        )
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].lower()
        assert "; secure" in cookie
        assert "; httponly" in cookie
        assert "max-age" in answer.headers["strict-transport-security"]


def test_who_does_not_encrypt_gets_nothing(
    tmp_path: Path, tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    with listening(tmp_path, tls) as (server, port):
        head = b"GET /queries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        with socket.create_connection(("127.0.0.1", port), timeout=LONG) as plain:
            plain.sendall(head + server.secrets["read"].encode() + b"\r\n\r\n")
            try:
                got = plain.recv(1000)
            except ConnectionResetError:
                got = b""
        assert b"HTTP" not in got
        trusted = ssl.create_default_context(cafile=tls.authority)
        assert httpx.get(f"https://127.0.0.1:{port}/health", verify=trusted).status_code == 200
    assert not [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]
