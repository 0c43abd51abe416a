"""The log of a server: one line for each event, bounded, and without secrets."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.model.events import event
from nilometer.server.config import read_config
from nilometer.server.log_lines import Lines, escaped
from nilometer.server.log_settings import LogSettings, read_log_settings
from nilometer.server.server_log import RotatingFile, ServerLog
from nilometer.server.sparing import MOST_OF_KIND, MOST_OF_ONE, WITHIN, Sparing
from nilometer.spark.said import said_to
from tests.patience import wait_for

LOG = logging.getLogger("nilometer.queries")


def record(
    words: str, *given: object, level: int = logging.WARNING, **more: object
) -> logging.LogRecord:
    extra = event(**more) if more else None  # type: ignore[arg-type]
    return LOG.makeRecord(LOG.name, logging.WARNING, __file__, 1, words, given, None, extra=extra)


class Kept(logging.Handler):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, one: logging.LogRecord) -> None:
        self.lines.append(one.getMessage())


@pytest.fixture
def loggers() -> Iterator[None]:
    """Loggers are as they were in the end."""
    names = [
        "",
        "nilometer",
        "py4j",
        "pyspark",
        "SQLQueryContextLogger",
        "uvicorn",
        "uvicorn.access",
    ]
    loggers = [logging.getLogger(name) for name in names]
    before = [(one, one.level, list(one.handlers)) for one in loggers]
    yield
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers = handlers


@given(st.text())
def test_a_line_is_one_line_whatever_is_logged(text: str) -> None:
    line = Lines("text").format(record("query %s failed", text))
    assert line.isprintable()
    assert len(line.splitlines()) == 1
    fields = json.loads(Lines("json").format(record("query %s failed", text, name="e", query=text)))
    assert fields["event"] == "e"


def test_json_has_the_fields_and_none_of_them_replaces_what_stands_there() -> None:
    one = record(
        "q failed", name="query_failed", query="q", failures=2, time="never", rate=float("nan")
    )
    line = json.loads(Lines("json").format(one))
    assert list(line)[:5] == ["time", "level", "logger", "event", "message"]
    assert (line["query"], line["failures"], line["rate"]) == ("q", 2, "nan")
    assert line["time"].endswith("Z")
    assert line["time"].startswith("20")


def test_lines_cannot_be_forged_and_have_no_tokens() -> None:
    text = "q\n2026-01-01T00:00:00Z ERROR nilometer.server: forged \x1b[2J\u2028\u202e"
    line = Lines("text").format(record("%s nm_" + "a" * 43, text))
    assert "\\n2026-01-01" in line
    assert "\\x1b[2J\\u2028\\u202e" in line
    assert "nm_…" in line
    assert "aaaa" not in line
    assert escaped("Zürich °C") == "Zürich °C"


def test_a_traceback_stands_in_the_same_line() -> None:
    try:
        raise ValueError("got\nthis")
    except ValueError:
        one = logging.LogRecord("n", logging.ERROR, "p", 1, "unforeseen", (), sys.exc_info())
    assert "ValueError: got\\nthis" in Lines("text").format(one)
    assert "ValueError: got\nthis" in json.loads(Lines("json").format(one))["error"]


def test_who_can_cause_events_cannot_fill_the_log() -> None:
    now = [0.0]
    handler = Kept()
    sparing = Sparing([handler], lambda: now[0])
    for number in range(1000):
        one = record("refused %s", number, name="access_refused", spare=f"10.0.{number % 4}.1")
        sparing.handle(one)
        sparing.handle(record("a query failed"))
    refused = [line for line in handler.lines if line.startswith("refused")]
    assert len(refused) == 4 * MOST_OF_ONE
    assert handler.lines.count("a query failed") == 1000
    now[0] = WITHIN
    sparing.tell_rest()
    assert handler.lines[-1] == f"access refused: {1000 - 4 * MOST_OF_ONE} more within a minute"
    sparing.handle(record("refused again", name="access_refused", spare="10.0.0.1"))
    assert handler.lines[-1] == "refused again"


def test_many_addresses_are_bounded_together() -> None:
    handler = Kept()
    sparing = Sparing([handler], lambda: 0.0)
    for number in range(5000):
        sparing.handle(record("refused", name="access_refused", spare=str(number)))
    assert len(handler.lines) == MOST_OF_KIND
    sparing.tell_rest(at_once=True)
    assert handler.lines[-1] == f"access refused: {5000 - MOST_OF_KIND} more within a minute"


def test_files_are_bounded_and_private(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, LogSettings(max_bytes=2_000, files=3))
    file.setFormatter(Lines("text"))
    for number in range(500):
        file.handle(record("line %d", number))
    file.close()
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["server.log", "server.log.1", "server.log.2"]
    for one in tmp_path.iterdir():
        assert one.stat().st_size <= 2_000
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert "line 499" in path.read_text()


def test_one_file_alone_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, LogSettings(max_bytes=1_000, files=1))
    file.setFormatter(Lines("text"))
    for number in range(100):
        file.handle(record("line %d", number))
    file.close()
    assert [one.name for one in tmp_path.iterdir()] == ["server.log"]
    assert path.stat().st_size <= 1_000
    assert "line 99" in path.read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log"
    path.symlink_to("/dev/full")
    file = RotatingFile(path, LogSettings(max_bytes=1 << 40))
    file.setFormatter(Lines("text"))
    for number in range(10):
        file.handle(record("line %d", number))
    with suppress(OSError):
        file.close()
    said = capsys.readouterr().err
    assert said.count("cannot be written") == 1
    assert "Traceback" not in said


@pytest.mark.usefixtures("loggers")
def test_what_comes_before_the_file_stands_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ServerLog(LogSettings(format="json"))
    log.begin()
    LOG.info("early")
    log.spark.take(b"WARN Spark: \x1b[0m early\n")
    assert not list(tmp_path.iterdir())
    log.open(tmp_path)
    LOG.info("late")
    LOG.debug("too fine")
    LOG.error("wrong")
    logging.getLogger("py4j").error("not told")
    log.spark.take(b"late\n")
    log.close()
    messages = [
        json.loads(line)["message"] for line in (tmp_path / "server.log").read_text().splitlines()
    ]
    assert messages == ["early", "late", "wrong"]
    assert (tmp_path / "server-spark.log").read_text() == "WARN Spark: \\x1b[0m early\nlate\n"
    assert [json.loads(one)["message"] for one in capsys.readouterr().err.splitlines()] == ["wrong"]


@pytest.mark.usefixtures("loggers")
def test_standard_error_gets_all_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ServerLog(read_log_settings(None, file="-", level="warning"))
    log.begin()
    log.open(tmp_path)
    LOG.info("too fine")
    LOG.warning("amiss")
    log.close()
    assert [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()] == ["amiss"]
    assert not (tmp_path / "server.log").exists()


def test_what_processes_write_comes_line_by_line(tmp_path: Path) -> None:
    lines: list[bytes] = []
    with said_to(lines.append, tmp_path) as sink:
        os.write(sink, b"one\ntwo\n" + b"x" * 200_000 + b"\n")
    wait_for(lambda: b"".join(lines).endswith(b"x\n"))
    assert lines[:2] == [b"one\n", b"two\n"]
    assert max(map(len, lines)) <= 64 << 10


def test_settings_of_the_file_and_of_the_command(tmp_path: Path) -> None:
    config = tmp_path / "plant.toml"
    config.write_text('[log]\nlevel = "debug"\nfile = "plant.log"\nfiles = 2\nslow_seconds = 1\n')
    settings = read_log_settings(config)
    assert settings == LogSettings(tmp_path / "plant.log", "debug", files=2, slow_seconds=1.0)
    assert read_config(config).log == settings
    assert settings.spark_file_in(tmp_path / "db") == tmp_path / "plant-spark.log"
    assert read_log_settings(config, level="error").level == "error"
    usual = read_log_settings(None)
    assert usual.file_in(tmp_path) == tmp_path / "server.log"
    assert usual.spark_file_in(tmp_path) == tmp_path / "server-spark.log"
    assert read_log_settings(config, file="-").file_in(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('level = "loud"', "log.level cannot be 'loud'"),
        ('format = "xml"', "log.format cannot be 'xml'"),
        ("files = 0", "log.files cannot be 0"),
        ("colour = 1", "the configuration has no log.colour"),
        ('file = "no/such/folder.log"', "the log cannot be written to"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "plant.toml"
    config.write_text(f"[log]\n{text}\n")
    with pytest.raises(InputError) as error:
        read_log_settings(config)
    assert said in error.value.message
