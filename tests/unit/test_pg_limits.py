"""What a client of PostgreSQL's protocol may take: no more than one of the HTTP API."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nilometer.server.pg import statements
from nilometer.server.pg.statements import read_commands
from nilometer.server.settings import ServerSettings
from tests.patience import LONG, pace, wait_for
from tests.pg_at_work import listening
from tests.served import Served, served

SETTINGS = ServerSettings(
    statement_seconds=30,
    max_statement_characters=20_000,
    max_connections_each=3,
    max_statements_each=2,
    max_answer_bytes=1 << 20,
)


class Clients:
    """Connections to a server with small limits."""

    def __init__(self, served: Served, port: int) -> None:
        self.served = served
        self.port = port

    def connect(self, scope: str = "read") -> psycopg.Connection[Any]:
        secret = self.served.secrets[scope]
        dsn = f"host=127.0.0.1 port={self.port} user=x dbname=nilometer password={secret}"
        return psycopg.connect(dsn, autocommit=True)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with (
        served(tmp_path_factory.mktemp("pg"), SETTINGS) as one,
        listening(one.service, one.tokens) as port,
    ):
        yield Clients(one, port)


def test_statements_are_not_read_between_answers(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = list[str]()
    read = statements.read_command

    def noted(text: str) -> Any:
        readers.append(threading.current_thread().name)
        return read(text)

    monkeypatch.setattr(statements, "read_command", noted)
    with clients.connect() as connection:
        connection.execute("SELECT 1")
        connection.execute("SELECT %s::text", ("x",), prepare=True)
    assert len(readers) >= 2
    assert all(name.startswith("plan") for name in readers)


def test_a_long_statement_is_refused(clients: Clients) -> None:
    with clients.connect() as connection:
        for prepare in (False, True):
            with pytest.raises(psycopg.Error, match="the statement is too long"):
                connection.execute(f"SELECT {'1 + ' * 6000} 1", prepare=prepare)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_deep_statement_is_refused(clients: Clients) -> None:
    with clients.connect() as connection:
        with pytest.raises(psycopg.errors.SyntaxError, match="nested too deeply"):
            connection.execute(f"SELECT {'(' * 5000}1{')' * 5000}")
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "SHOW" + " " * 60_000 + "!",
        "SHOW x" + " " * 60_000 + "!",
        "COPY (SELECT 1) TO STDOUT" + " " * 60_000 + "!" + " " * 60_000,
        "COPY (" + ") " * 30_000 + "TO STDIN",
        "COPY x" + " " * 60_000 + "FROM STDIN",
        "COPY (SUBSCRIBE" + " " * 60_000 + "a b) TO STDOUT",
        "COPY (SELECT 1) TO STDOUT WITH " + "DELIMITER " * 6_000,
    ],
)
def test_no_text_is_tried_in_very_many_ways(text: str) -> None:
    began = time.process_time()
    for one in read_commands(text) if "SUBSCRIBE" in text else [statements.read_command(text)]:
        statements._show(one.text)
    assert time.process_time() - began < 2 * pace()


def test_a_token_has_its_share_of_connections(clients: Clients) -> None:
    own = [clients.connect() for _ in range(3)]
    with pytest.raises(psycopg.OperationalError, match="3 connections of one token are open"):
        clients.connect()
    with clients.connect("write") as other:
        assert other.execute("SELECT 1").fetchone() == (1,)
    own.pop().close()
    connections = list[psycopg.Connection[Any]]()

    def comes_in() -> bool:
        try:
            connections.append(clients.connect())
        except psycopg.OperationalError:
            return False
        return True

    wait_for(comes_in)
    for one in (*own, *connections):
        one.close()


def test_the_catalog_is_asked_as_a_statement(clients: Clients) -> None:
    """Questions about nothing at all run as long, and answer as much, as any other."""
    with clients.connect() as connection:
        with pytest.raises(psycopg.Error, match="the answer is too large"):
            connection.execute("SELECT * FROM generate_series(1, 100000000)")
        row = connection.execute("SELECT COUNT(*) FROM generate_series(1, 1000)").fetchone()
        assert row == (1000,)


def test_questions_to_the_catalog_count_for_their_token(clients: Clients) -> None:
    slow = "SELECT COUNT(*) FROM range(100000000) a, range(100000) b"
    ended = list[str]()

    def ask(connection: psycopg.Connection[Any]) -> None:
        with pytest.raises(psycopg.Error) as error:
            connection.execute(slow)
        ended.append(str(error.value))

    with clients.connect() as first, clients.connect() as second, clients.connect() as third:
        asking = [threading.Thread(target=ask, args=(one,)) for one in (first, second)]
        for one in asking:
            one.start()
        wait_for(lambda: clients.served.service.statements_taken == 2)
        with pytest.raises(psycopg.Error, match="2 statements of one token run or wait already"):
            third.execute("SELECT 1")
        with clients.connect("write") as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        for one in (first, second):
            one.cancel_safe(timeout=LONG)
        for thread in asking:
            thread.join(LONG)
    assert len(ended) == 2


def message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


def portal(name: bytes) -> bytes:
    """Open a portal over an answer of 800 kB, and take one row of it."""
    text = b"SELECT * FROM generate_series(1, 100000)"
    return b"".join(
        (
            message(b"P", b"\0" + text + b"\0" + struct.pack("!h", 0)),
            message(b"B", name + b"\0\0" + struct.pack("!hhh", 0, 0, 0)),
            message(b"E", name + b"\0" + struct.pack("!i", 1)),
            message(b"H", b""),
        )
    )


def test_answers_that_are_not_read_are_bounded(clients: Clients) -> None:
    """Portals that stay open hold their rows: those of one token have room for four answers."""
    secret = clients.served.secrets["read"].encode()
    with socket.create_connection(("127.0.0.1", clients.port), timeout=LONG) as raw:
        start = struct.pack("!i", 196608) + b"user\0x\0\0"
        raw.sendall(struct.pack("!i", len(start) + 4) + start)
        raw.sendall(message(b"p", secret + b"\0") + message(b"Q", b"BEGIN\0"))
        for n in range(8):
            raw.sendall(portal(b"p%d" % n))
        raw.sendall(message(b"S", b"") + message(b"Q", b"COMMIT\0") + message(b"S", b""))
        raw.sendall(portal(b"again") + message(b"S", b"") + message(b"X", b""))
        received = bytearray()
        while part := raw.recv(1 << 16):
            received += part
    assert received.count(b"bytes of answers are held") == 1
    assert received.count(b"s\0\0\0\x04") == 6  # rows of five, and once more after the commit


def test_prepared_statements_are_bounded(clients: Clients, tmp_path: Path) -> None:
    with clients.connect() as connection:
        text = b"SELECT '" + b"x" * 19_000 + b"'"
        for n in range(80):
            result = connection.pgconn.prepare(f"s{n}".encode(), text)
            if b"prepared statements are too long" in result.error_message:
                break
        assert 50 < n < 60
        assert connection.execute("SELECT 1").fetchone() == (1,)
