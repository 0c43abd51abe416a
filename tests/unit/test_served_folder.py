"""The driver serves the folder of an engine to those who know its key, and to nobody else."""

from __future__ import annotations

import secrets
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from nilometer.engine import channel as channel_module
from nilometer.engine.at_work import MOST_DEATHS
from nilometer.engine.bucket_files import BucketFolder, QueryEntry
from nilometer.engine.channel import Channel, answer_call, call
from nilometer.engine.folder import LocalFolder
from nilometer.engine.place import (
    LocalPlace,
    ServedAddress,
    ServedPlace,
    read_address,
    write_address,
)
from nilometer.engine.plan_set import PlanEntry, PlanFolder, PlanSet
from nilometer.engine.serve_folder import FolderServer
from nilometer.errors import LogError, SessionError

KEY = b"k" * 32


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FolderServer]:
    PlanFolder(tmp_path).write(PlanSet(7, {"q": PlanEntry("q", 0, None)}))
    with closing(FolderServer(tmp_path, "127.0.0.1")) as made:
        yield made


@pytest.fixture
def place(server: FolderServer) -> Iterator[ServedPlace]:
    with closing(ServedPlace(server.address)) as made:
        yield made


def test_what_is_there_is_the_same_from_afar(place: ServedPlace, tmp_path: Path) -> None:
    here = LocalPlace(tmp_path)
    name = PlanFolder(tmp_path).add_plan(b"a plan")
    assert place.plan_set() == here.plan_set()
    assert place.plan(name) == here.plan(name) == b"a plan"
    assert place.published(0) == here.published(0) == -1
    large = secrets.token_bytes(3 << 20)
    entry = QueryEntry("q", b"state", b"about", {"c": large, "d": b"small"}, [], [b"frame"] * 5)
    far, near = place.files(0), here.files(0)
    assert far.write(0, 7, 1, [entry], is_whole=True) == near.read_batch(0) == far.read_batch(0)
    assert far.numbers() == near.numbers() == [0]
    (shipped,) = far.read_batch(0).entries
    assert [far.read(one) for one in shipped.chunks.values()] == [large, b"small"]
    assert [near.read(one) for one in shipped.frames] == [b"frame"] * 5


def test_a_header_of_megabytes_is_read_whole(place: ServedPlace, tmp_path: Path) -> None:
    entries = [QueryEntry(f"q{number}", report={"x": "y" * 100}) for number in range(5000)]
    place.files(0).write(0, 1, 1, entries, is_whole=True)
    assert len(place.files(0).read_batch(0).entries) == 5000
    assert len(LocalPlace(tmp_path).files(0).read_batch(0).entries) == 5000


def test_of_many_workers_one_is_first(server: FolderServer, tmp_path: Path) -> None:
    """From afar or from here, each of twenty files is written by one of them."""
    won = list[tuple[int, int]]()
    ready = threading.Barrier(6)

    def write(worker: int) -> None:
        far = ServedPlace(server.address)
        place = far if worker % 2 else LocalPlace(tmp_path)
        files = place.files(3)
        for number in range(20):
            ready.wait()
            entry = QueryEntry("q", b"%d" % worker)
            if files.write(number, 1, 1, [entry], is_whole=True) is not None:
                won.append((number, worker))
        far.close()

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(number for number, _ in won) == list(range(20))
    files = LocalPlace(tmp_path).files(3)
    for number, worker in won:
        (entry,) = files.read_batch(number).entries
        assert entry.state is not None
        assert files.read(entry.state) == b"%d" % worker


def test_old_files_are_deleted_from_afar(place: ServedPlace, tmp_path: Path) -> None:
    files = place.files(0)
    for number in range(4):
        entry = QueryEntry("q", b"state", chunks={"c": bytes(1 << 20)})
        files.write(number, 1, 1, [entry], is_whole=True)
    (last,) = files.read_batch(3).entries
    files.delete_before(3, 3, last.chunks.values())
    names = {one.name for one in (tmp_path / "buckets" / "0").glob("0*")}
    assert names == {"000000000003.batch", last.chunks["c"].file}


def test_what_is_missing_or_damaged_is_reported(place: ServedPlace, tmp_path: Path) -> None:
    files = place.files(0)
    with pytest.raises(FileNotFoundError):
        files.read_batch(0)
    batch = files.write(0, 1, 1, [QueryEntry("q", b"state")], is_whole=True)
    assert batch is not None
    path = tmp_path / "buckets" / "0" / "000000000000.batch"
    path.write_bytes(path.read_bytes()[:-1])
    (entry,) = batch.entries
    assert entry.state is not None
    with pytest.raises(LogError, match="damaged or missing"):
        files.read(entry.state)
    path.write_bytes(b"x")
    with pytest.raises(LogError, match="damaged or missing"):
        files.read_batch(0)


def test_an_error_of_the_disk_reaches_the_worker(
    place: ServedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalFolder, "create", full)
    with pytest.raises(OSError, match="No space left") as caught:
        place.files(0).write(0, 1, 1, [], is_whole=True)
    assert caught.value.errno == 28
    monkeypatch.undo()
    assert place.files(0).write(0, 1, 1, [], is_whole=True) is not None


def test_a_query_that_ends_its_process_is_found(server: FolderServer) -> None:
    for _ in range(MOST_DEATHS - 1):
        worker = ServedPlace(server.address)
        worker.at_work(0).begin("bad")
        worker.published(0)  # what it said before has arrived
        worker.close()  # and the process is gone
        assert ServedPlace(server.address).at_work(0).died() is None
    worker = ServedPlace(server.address)
    worker.at_work(0).begin("bad")
    worker.published(0)
    worker.close()
    watch = ServedPlace(server.address).at_work(0)
    assert watch.died() == "bad"
    watch.begin("good")
    watch.end()
    watch.all_is_well()
    assert watch.died() is None


def test_who_does_not_know_the_key_is_not_let_in(server: FolderServer) -> None:
    wrong = replace(server.address, key=KEY)
    with pytest.raises(SessionError, match="does not answer"):
        ServedPlace(wrong).plan_set()


def test_a_server_that_does_not_know_the_key_is_not_believed() -> None:
    """Plans are programs: a worker takes them from the driver only."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def pretend() -> None:
            connected, _ = listening.accept()
            with connected, suppress(OSError):
                answer_call(connected, b"x" * 32)

        thread = threading.Thread(target=pretend)
        thread.start()
        address = ServedAddress("127.0.0.1", listening.getsockname()[1], KEY)
        with pytest.raises(SessionError) as caught:
            ServedPlace(address).plan_set()
        assert "does not have its key" in str(caught.value.detail)
        thread.join()


def test_the_key_is_in_no_text(server: FolderServer) -> None:
    assert server.address.key.hex() not in repr(server.address)
    assert repr(server.address.key) not in repr(server.address)


def test_the_address_is_for_the_user_of_the_server_only(tmp_path: Path) -> None:
    address = ServedAddress("127.0.0.1", 7, KEY)
    write_address(tmp_path, address)
    assert read_address(tmp_path) == address
    assert stat.S_IMODE((tmp_path / "served.json").stat().st_mode) == 0o600
    write_address(tmp_path, None)
    assert read_address(tmp_path) is None


@pytest.mark.parametrize(
    "asked",
    [
        {"ask": "read", "bucket": 0, "name": "../../etc/passwd", "start": 0, "length": 9},
        {"ask": "read", "bucket": 0, "name": "/etc/passwd", "start": 0, "length": 9},
        {"ask": "read", "bucket": "../..", "name": "000000000000.batch", "start": 0, "length": 9},
        {"ask": "read", "bucket": 0, "name": "000000000000.batch", "start": -1, "length": 9},
        {"ask": "read", "bucket": 0, "name": "000000000000.batch\n", "start": 0, "length": 9},
        {"ask": "read", "bucket": 0},
        {"ask": "create", "bucket": 0, "name": ".at-work"},
        {"ask": "delete", "bucket": 0, "names": ["000000000000.batch", "../../plans.json"]},
        {"ask": "delete", "bucket": 0, "names": 5},
        {"ask": "plan", "name": "../plans.json"},
        {"ask": "published", "bucket": True},
        {"ask": "names", "bucket": -1},
        {"ask": "__init__", "bucket": 0},
        {"ask": ["names"], "bucket": 0},
        {},
    ],
    ids=str,
)
def test_only_files_of_buckets_can_be_named(
    server: FolderServer, tmp_path: Path, asked: dict[str, object]
) -> None:
    LocalPlace(tmp_path).files(0).write(0, 1, 1, [], is_whole=True)
    before = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()}
    address = server.address
    channel = call((address.host, address.port), address.key, 10)
    with closing(channel), suppress(ConnectionError):
        channel.send(asked)
        answer = channel.receive()  # the connection is closed
        assert answer is None
    for path, content in before.items():
        assert path.read_bytes() == content
    with closing(ServedPlace(address)) as other:
        assert other.files(0).numbers() == [0]


@pytest.mark.parametrize("position", [0, 5, 12, 14, -33, -1])
def test_a_message_that_was_changed_is_not_followed(position: int) -> None:
    ours, theirs = socket.socketpair()
    with closing(Channel(ours, KEY, KEY)) as sends, theirs:
        sends.send({"ask": "plan"}, [b"body"])
        content = bytearray(theirs.recv(4096))
        content[position] ^= 1
        there, here = socket.socketpair()
        with there, closing(Channel(here, KEY, KEY)) as receives:
            there.sendall(content)
            there.shutdown(socket.SHUT_WR)
            with pytest.raises(ConnectionError):
                receives.receive()


def test_a_message_is_not_followed_twice_nor_sent_back() -> None:
    ours, theirs = socket.socketpair()
    with closing(Channel(ours, b"u" * 32, b"d" * 32)) as sends, theirs:
        sends.send({"ask": "delete"})
        content = theirs.recv(4096)
        there, here = socket.socketpair()
        with there, closing(Channel(here, b"d" * 32, b"u" * 32)) as receives:
            there.sendall(content + content)
            assert receives.receive() == ({"ask": "delete"}, b"")
            with pytest.raises(ConnectionError, match="altered in transit"):
                receives.receive()
        theirs.sendall(content)
        with pytest.raises(ConnectionError, match="altered in transit"):
            sends.receive()


def test_strangers_who_say_nothing_keep_nobody_out(server: FolderServer) -> None:
    address = (server.address.host, server.address.port)
    strangers = [socket.create_connection(address) for _ in range(20)]
    for number, one in enumerate(strangers):
        one.sendall(secrets.token_bytes(number))
    with closing(ServedPlace(server.address)) as place:
        assert place.plan_set().revision == 7
    for one in strangers:
        one.close()


def test_strangers_who_say_little_at_a_time_are_sent_away(
    server: FolderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of what proves the key has to come within the time for it, however often a byte comes."""
    monkeypatch.setattr(channel_module, "HANDSHAKE_SECONDS", 0.3)
    address = (server.address.host, server.address.port)
    with socket.create_connection(address, 10) as stranger:
        with suppress(ConnectionError):
            for byte in b"NiEngine" + bytes(32):
                stranger.sendall(bytes([byte]))
                time.sleep(0.05)
        with suppress(ConnectionError):
            assert len(stranger.recv(1)) == 0


def test_a_worker_finds_the_driver_again(server: FolderServer, place: ServedPlace) -> None:
    assert place.plan_set().revision == 7
    for one in list(server._connected):
        one.shutdown(socket.SHUT_RDWR)
    with pytest.raises(SessionError, match="does not answer") as caught:
        place.plan_set()
    assert "spark.driver.host" in str(caught.value.hint)
    assert place.plan_set().revision == 7


def test_a_closed_server_serves_nobody(server: FolderServer, place: ServedPlace) -> None:
    assert place.plan_set().revision == 7
    server.close()
    with pytest.raises(SessionError):
        place.plan_set()
    with pytest.raises(SessionError):
        ServedPlace(server.address).plan_set()


def test_batches_are_those_of_the_folder(tmp_path: Path) -> None:
    """Opening a folder makes it; a name that is no number is somebody else's."""
    files = BucketFolder(LocalFolder(tmp_path / "new"))
    (tmp_path / "new" / ".at-work").touch()
    assert files.numbers() == []
