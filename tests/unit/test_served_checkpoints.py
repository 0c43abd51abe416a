"""The driver serves checkpoints to those who know their addresses, and to nobody else."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from nilometer.spark import webhdfs
from nilometer.spark.copy_state import _copying
from nilometer.spark.moved_state import MANIFEST, MovedBucket
from nilometer.spark.serve_checkpoints import CheckpointServer, without_addresses
from nilometer.spark.served_files import opened_file, written_file
from nilometer.spark.state_paths import point_state_here
from tests.patience import wait_for

OPENED: list[HTTPConnection] = []
SCHEMA = pa.schema([("name", pa.string()), ("content", pa.large_binary())])


@pytest.fixture
def server() -> Iterator[CheckpointServer]:
    with closing(CheckpointServer("127.0.0.1")) as made:
        yield made


@pytest.fixture(autouse=True)
def close_clients() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q" / "state").mkdir(parents=True)
    (tmp_path / "secret").write_text("of somebody else")
    return tmp_path / "q"


class Client:
    """Asks as Spark's client does."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        assert url.hostname is not None
        self.at = f"/webhdfs/v1{url.path}"
        self.connection = HTTPConnection(url.hostname, url.port, timeout=30)
        OPENED.append(self.connection)

    def ask(
        self, method: str, path: str, body: Any = None, **more: str
    ) -> tuple[int, dict[str, Any]]:
        self.connection.request(method, f"{self.at}{path}", body, more)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.getheader("Content-Type") is None
        return answer.status, json.loads(content) if content else {}

    def create(self, path: str, content: bytes) -> int:
        status, _ = self.ask("PUT", f"{path}?op=CREATE")
        if status != 307:
            return status
        return self.ask("PUT", f"{path}?op=CREATE&data=true", iter([content[:7], content[7:]]))[0]


def test_what_spark_does_with_a_checkpoint(server: CheckpointServer, folder: Path) -> None:
    client = Client(server.serve(folder))
    assert client.ask("PUT", "/offsets?op=MKDIRS") == (200, {"boolean": True})
    content = secrets.token_bytes(3 << 20)
    assert client.create("/offsets/.0.tmp", content) == 201
    renamed = f"destination={client.at.removeprefix('/webhdfs/v1')}/offsets/0"
    assert client.ask("PUT", f"/offsets/.0.tmp?op=RENAME&{renamed}") == (200, {"boolean": True})
    assert (folder / "offsets" / "0").read_bytes() == content
    (status,) = client.ask("GET", "/offsets?op=LISTSTATUS")[1]["FileStatuses"]["FileStatus"]
    assert (status["pathSuffix"], status["type"], status["length"]) == ("0", "FILE", 3 << 20)
    for part, wanted in ("", content), ("&offset=5", content[5:]), ("&length=9", content[:9]):
        client.connection.request("GET", f"{client.at}/offsets/0?op=OPEN{part}")
        assert client.connection.getresponse().read() == wanted
    assert client.create("/offsets/.1.tmp", b"another") == 201
    assert client.ask("PUT", f"/offsets/.1.tmp?op=RENAME&{renamed}&renameoptions=OVERWRITE")[0]
    assert (folder / "offsets" / "0").read_bytes() == b"another", "it is replaced"
    assert client.ask("GET", "/offsets/1?op=GETFILESTATUS")[0] == 404
    assert client.ask("DELETE", "/offsets?op=DELETE&recursive=true") == (200, {"boolean": True})
    assert client.ask("DELETE", "/offsets?op=DELETE") == (200, {"boolean": False})
    assert not (folder / "offsets").exists()


def test_an_earlier_address_writes_nothing(server: CheckpointServer, folder: Path) -> None:
    before, now = Client(server.serve(folder)), Client(server.serve(folder))
    assert before.create("/state/1.changelog", b"of a zombie") == 403
    assert now.create("/state/1.changelog", b"right") == 201
    assert (folder / "state" / "1.changelog").read_bytes() == b"right"
    assert server.address_of(folder).endswith(now.at.removeprefix("/webhdfs/v1"))


def test_a_checkpoint_that_was_dropped_does_not_come_back(
    server: CheckpointServer, folder: Path
) -> None:
    client = Client(server.serve(folder))
    (folder / "state").rmdir()
    folder.rmdir()
    assert client.ask("PUT", "/state?op=MKDIRS")[0] == 404
    assert client.create("/state/1.changelog", b"late") == 404
    assert not folder.exists()


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/state/../../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "//etc/passwd",
        "/a%00",
    ],
)
def test_no_path_leads_elsewhere(server: CheckpointServer, folder: Path, path: str) -> None:
    address = server.serve(folder)
    for method, operation in ("GET", "OPEN"), ("PUT", "CREATE&data=true"), ("DELETE", "DELETE"):
        status, answer = Client(address).ask(method, f"{path}?op={operation}", b"x")
        assert status == 400, answer
    client = Client(address)
    assert client.create("/mine", b"mine") == 201
    renamed = client.at.removeprefix("/webhdfs/v1") + path
    assert client.ask("PUT", f"/mine?op=RENAME&destination={renamed}")[0] == 400
    assert (folder.parent / "secret").read_text() == "of somebody else"


def test_a_file_cannot_be_moved_to_another_checkpoint(
    server: CheckpointServer, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    client, other = Client(server.serve(folder)), Client(server.serve(tmp_path / "other"))
    client.create("/mine", b"mine")
    there = other.at.removeprefix("/webhdfs/v1") + "/mine"
    assert client.ask("PUT", f"/mine?op=RENAME&destination={there}")[0] == 403
    assert not list((tmp_path / "other").iterdir())


def test_strangers_learn_nothing(server: CheckpointServer, folder: Path) -> None:
    url = urlsplit(server.serve(folder))
    for guess in "", "/", f"/{secrets.token_hex(16)}", str(folder), f"{url.path[:-1]}g":
        for method, operation in ("GET", "LISTSTATUS"), ("PUT", "MKDIRS"), ("DELETE", "DELETE"):
            stranger = Client(f"webhdfs://{url.netloc}{guess}")
            status, answer = stranger.ask(method, f"/state?op={operation}")
            assert status == 403, (guess, answer)
            assert "java.io.IOException" in str(answer)
    assert (folder / "state").is_dir()


@pytest.mark.parametrize("operation", ["GETDELEGATIONTOKEN", "SETXATTR", "CONCAT", ""])
def test_what_is_not_offered(server: CheckpointServer, folder: Path, operation: str) -> None:
    assert Client(server.serve(folder)).ask("GET", f"/state?op={operation}")[0] == 400


def test_the_checkpoint_itself_is_not_deleted(server: CheckpointServer, folder: Path) -> None:
    client = Client(server.serve(folder))
    assert client.ask("DELETE", "?op=DELETE&recursive=true")[0] == 403
    assert folder.is_dir()


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 9\r\n\r\nshort",
        b"Content-Length: -9\r\n\r\n",
        b"Content-Length: nine\r\n\r\n",
        b"\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n9\r\nshort",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-5\r\nshort\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_file_that_ends_too_early_is_not_kept(
    server: CheckpointServer, folder: Path, head: bytes
) -> None:
    url = urlsplit(server.serve(folder))
    assert url.hostname is not None
    assert url.port is not None
    with socket.create_connection((url.hostname, url.port), 30) as connected:
        path = f"/webhdfs/v1{url.path}/state/1.zip?op=CREATE&data=true"
        connected.sendall(f"PUT {path} HTTP/1.1\r\nHost: here\r\n".encode() + head)
        connected.shutdown(socket.SHUT_WR)
        while connected.recv(1000):
            pass
    assert not (folder / "state" / "1.zip").exists()


def test_strangers_have_seconds_in_all(
    server: CheckpointServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs, "_STRANGER_SECONDS", 0.5)
    url = urlsplit(server.serve(folder))
    assert url.hostname is not None
    assert url.port is not None
    at = (url.hostname, url.port)
    slow = [socket.create_connection(at, 30) for _ in range(80)]
    try:
        ended, start = 0, time.monotonic()
        while ended < len(slow) and time.monotonic() - start < 30:
            ended = 0
            for one in slow:
                with suppress(OSError):
                    one.setblocking(False)
                    one.send(b"G")
                    if one.recv(100) != b"":
                        continue
                    ended += 1
                    continue
                ended += one.fileno() >= 0 and _is_closed(one)
            time.sleep(0.05)
        assert ended == len(slow)
        assert (
            Client(f"webhdfs://{url.netloc}{url.path}").ask("GET", "/state?op=LISTSTATUS")[0] == 200
        )
    finally:
        for one in slow:
            one.close()


def _is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(100) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_a_client_that_is_known_may_wait(
    server: CheckpointServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs, "_STRANGER_SECONDS", 0.2)
    address = server.serve(folder)
    client = Client(address)
    assert client.ask("GET", "/state?op=LISTSTATUS")[0] == 200
    url = urlsplit(address)
    with socket.create_connection((str(url.hostname), url.port or 0)) as stranger:
        stranger.setblocking(False)
        wait_for(lambda: _is_closed(stranger))
    assert client.ask("GET", "/state?op=LISTSTATUS")[0] == 200


@pytest.mark.parametrize("is_served", [True, False])
def test_state_is_copied_by_tasks(server: CheckpointServer, folder: Path, is_served: bool) -> None:
    place = server.serve(folder) if is_served else str(folder)
    content = secrets.token_bytes(2 << 20)
    (folder / "moved").mkdir()
    with _copying(f"{place}/moved") as copy:
        for name, one in (MANIFEST, b'{"a": 1}'), ("c", content):
            row = [pa.array([name]), pa.array([one], pa.large_binary())]
            copy.writer.write_batch(pa.RecordBatch.from_arrays(row, schema=SCHEMA))
    with opened_file(f"{place}/moved/{copy.file}") as path:
        bucket = MovedBucket(path)
    assert bucket.manifest == {"a": 1}
    assert dict(bucket.contents()) == {"c": content}


def test_what_is_not_there_is_an_error(server: CheckpointServer, folder: Path) -> None:
    with (
        pytest.raises(OSError, match="does not serve gone"),
        opened_file(f"{server.serve(folder)}/gone"),
    ):
        pass
    server.close()
    with (
        pytest.raises(OSError, match="refused"),
        written_file(f"{server.serve(folder)}/new") as path,
    ):
        path.write_bytes(b"x")


def test_spark_finds_state_at_the_new_address(server: CheckpointServer, folder: Path) -> None:
    metadata = folder / "state" / "0" / "_metadata" / "v2" / "0"
    metadata.parent.mkdir(parents=True)
    schema = "state/0/_stateSchema/default/0_1"
    stored = {"stateStoreInfo": [{"stateSchemaFilePaths": [f"file:/old/{schema}"]}]}
    metadata.write_text(f"v2\n{json.dumps(stored)}")
    for address in server.serve(folder), server.serve(folder), None:
        assert point_state_here(folder, address) == 1
        place = f"file:{folder}" if address is None else address
        assert f'"{place}/{schema}"' in metadata.read_text()
        assert point_state_here(folder, address) == 0


def test_errors_do_not_tell_addresses(server: CheckpointServer, folder: Path) -> None:
    address = server.serve(folder)
    text = without_addresses(f"cannot write '{address}/state/0/1.zip': no space")
    assert text == "cannot write 'the checkpoint/state/0/1.zip': no space"
