"""What a log is after its files were torn or garbled at any byte."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nilometer.errors import LogError
from nilometer.log.head import Head
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.parts import write_part
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.log.writer import LogWriter
from tests.unit.log_samples import LAYOUT, numbers_in, rows_dropped, rows_from

SEGMENT = "000000000000.seg"


@dataclass(frozen=True)
class Written:
    """A log, its ends after each transaction, and the heads that were published then."""

    folder: Path
    ends: list[Position]
    heads: list[bytes]

    @property
    def size(self) -> int:
        return self.ends[-1].byte


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Four transactions: rows, punctuation alone, rows of two parts at once, rows with keys."""
    folder = tmp_path_factory.mktemp("written")
    log = folder / "log"
    with LogWriter.open(log, LAYOUT) as writer:
        ends, heads = [writer.end], [(log / "head").read_bytes()]

        def note() -> None:
            ends.append(writer.end)
            heads.append((log / "head").read_bytes())

        writer.append(rows_from(0, 3))
        note()
        writer.append(None, watermark=2)
        note()
        parts = [
            write_part(folder / f"part{number}", [rows_from(3 + number * 4, 4)])
            for number in (0, 1)
        ]
        writer.append_parts([one for one in parts if one], watermark=11, key=("q", 5))
        note()
        writer.append(rows_from(11, 2), watermark=12, keys=[b"x", b"y"])
        note()
    return Written(log, ends, heads)


def damaged_copy(written: Written, to: Path, head: int | None) -> Path:
    """The files as they were when the head was this one (None: never written)."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(written.folder, to)
    if head is None:
        (to / "head").unlink()
    else:
        (to / "head").write_bytes(written.heads[head])
    return to


def check_recovered(log: Path, wanted: Position) -> None:
    for _ in range(2):  # what was recovered once stays
        with LogWriter.open(log, LAYOUT) as writer:
            assert writer.end == wanted
            assert writer.last_key == (("q", 5) if wanted.row >= 11 else None)
            assert numbers_in(LogReader.open(log).read(Position(0, 0))) == list(range(wanted.row))
    with LogWriter.open(log, LAYOUT) as writer:
        writer.append(rows_from(wanted.row, 5))
    assert numbers_in(LogReader.open(log).read(Position(0, 0))) == list(range(wanted.row + 5))


@settings(max_examples=40)
@given(data=st.data(), head=st.sampled_from([None, 0, 1, 2, 3]))
def test_a_torn_tail_is_cut_off_at_a_transaction(
    written: Written, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, head: int
) -> None:
    log = damaged_copy(written, tmp_path_factory.getbasetemp() / "torn", head)
    cut = data.draw(st.integers(written.ends[head or 0].byte, written.size))
    with (log / SEGMENT).open("r+b") as file:
        file.truncate(cut)
    check_recovered(log, max(one for one in written.ends if one.byte <= cut))


@settings(max_examples=40)
@given(data=st.data(), head=st.sampled_from([None, 0, 1, 2, 3]), flip=st.integers(1, 255))
def test_garbage_after_the_head_is_cut_off_at_a_transaction(
    written: Written,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    head: int,
    flip: int,
) -> None:
    log = damaged_copy(written, tmp_path_factory.getbasetemp() / "garbled", head)
    byte = data.draw(st.integers(written.ends[head or 0].byte, written.size - 1))
    garble(log / SEGMENT, byte, flip)
    check_recovered(log, max(one for one in written.ends if one.byte <= byte))


@settings(max_examples=40)
@given(byte=st.integers(0, 4000), flip=st.integers(1, 255))
@example(byte=0, flip=1)
def test_damage_before_the_head_is_never_passed_over(
    written: Written, tmp_path_factory: pytest.TempPathFactory, byte: int, flip: int
) -> None:
    log = damaged_copy(written, tmp_path_factory.getbasetemp() / "damaged", -1)
    byte %= written.size
    garble(log / SEGMENT, byte, flip)
    with pytest.raises(LogError, match="the log is damaged") as error:
        read_all(log)
    assert SEGMENT in str(error.value)


def read_all(log: Path) -> list[int]:
    LogWriter.open(log, LAYOUT).close()
    return numbers_in(LogReader.open(log).read(Position(0, 0)))


def garble(path: Path, byte: int, flip: int) -> None:
    content = bytearray(path.read_bytes())
    content[byte] ^= flip
    path.write_bytes(content)


def test_the_error_names_segment_and_byte(written: Written, tmp_path: Path) -> None:
    log = damaged_copy(written, tmp_path / "log", -1)
    garble(log / SEGMENT, written.ends[1].byte + 3, 1)
    with pytest.raises(LogError) as error:
        LogWriter.open(log, LAYOUT)
    assert f"segment {SEGMENT}, byte {written.ends[1].byte}:" in str(error.value)


def test_a_segment_that_was_being_begun_is_begun_again(written: Written, tmp_path: Path) -> None:
    header = (written.folder / SEGMENT).read_bytes()[: written.ends[0].byte]
    for cut in (0, 1, 71, 100, len(header) - 1):
        log = damaged_copy(written, tmp_path / f"log{cut}", -1)
        (log / "000000000001.seg").write_bytes(header[:cut])
        check_recovered(log, written.ends[-1])


def test_rows_that_a_power_failure_took_are_counted_and_their_numbers_not_used_again(
    tmp_path: Path,
) -> None:
    options = LogOptions(fsync=Fsync.NEVER)
    log = tmp_path / "log"
    writer = LogWriter.open(log, LAYOUT, options)
    writer.append(rows_from(0, 4))
    writer.sync()
    end = writer.append(rows_from(4, 4))
    seen = writer.append(rows_from(8, 4), watermark=11)
    files = {one.name: one.read_bytes() for one in log.iterdir() if one.is_file()}
    writer.close()
    for name, content in files.items():
        (log / name).write_bytes(content)
    register(log, "reader", seen, {}, now=0, named=True)
    with (log / SEGMENT).open("r+b") as file:
        file.truncate(end.byte + 7)

    with LogWriter.open(log, LAYOUT, options) as writer:
        assert rows_dropped(log) == 4
        writer.append(rows_from(12, 2))
        assert numbers_in(writer.read(seen)) == [12, 13]
    reader = LogReader.open(log)
    assert numbers_in(reader.read(reader.start)) == [*range(8), 12, 13]
    assert numbers_in(reader.read(seen)) == [12, 13]


def test_a_reader_that_saw_more_than_the_head_says_gets_nothing_twice(tmp_path: Path) -> None:
    """The head is not forced to the disk, what readers commit is."""
    log = tmp_path / "log"
    with LogWriter.open(log, LAYOUT, LogOptions(fsync=Fsync.NEVER)) as writer:
        empty = (log / "head").read_bytes()
        first = writer.end
        seen = writer.append(rows_from(0, 4))
    register(log, "reader", seen, {}, now=0, named=True)
    (log / "head").write_bytes(empty)
    with (log / SEGMENT).open("r+b") as file:
        file.truncate(first.byte)
    with LogWriter.open(log, LAYOUT) as writer:
        assert (writer.end.row, rows_dropped(log)) == (4, 4)
        writer.append(rows_from(4, 1))
    assert numbers_in(LogReader.open(log).read(seen)) == [4]


def test_segments_that_are_gone_altogether_are_damage(written: Written, tmp_path: Path) -> None:
    log = damaged_copy(written, tmp_path / "log", -1)
    (log / SEGMENT).unlink()
    with pytest.raises(LogError, match="the log is damaged"):
        LogWriter.open(log, LAYOUT)


def test_a_head_is_its_bytes_and_nothing_else() -> None:
    head = Head(Position(3, 4096, 0, 77), 12, (3, 1024))
    content = head.to_bytes()
    assert Head.from_bytes(content) == head
    assert Head.from_bytes(content[:-1]) is None
    assert Head.from_bytes(content[:9] + b"?" + content[10:]) is None
