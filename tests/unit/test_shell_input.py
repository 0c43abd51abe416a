"""What a shell makes of text: statements, its own commands, colours, and what it remembers."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nilometer.commands.shell.commands import COMMANDS, help_text, read_command
from nilometer.commands.shell.highlighting import marked
from nilometer.commands.shell.history import SafeHistory, open_history
from nilometer.commands.shell.split_input import has_words, is_complete, read_pieces, split_text
from nilometer.errors import InputError
from nilometer.model.secrets import holds_secret

PARTS = st.sampled_from(
    ["SELECT", " ", "\n", ";", "'", "''", '"', "`", "\\", "\\d", "/*", "*/", "--", "a", "1", ":k"]
)
TEXTS = st.lists(PARTS, max_size=25).map("".join)


@given(TEXTS)
def test_nothing_is_lost_between_statements(text: str) -> None:
    statements, rest = split_text(text)
    assert ";".join([*statements, rest]) == text


@given(TEXTS)
@example("SELECT 'it''s; \n';\nSELECT 2;")
def test_lines_give_what_the_whole_gives(text: str) -> None:
    """However a text is cut into lines, its statements are those of the whole."""
    if "\\" in text:
        return
    statements, rest = split_text(text)
    pieces = [one.text for one in read_pieces(text.splitlines(keepends=True))]
    assert pieces == [one.strip() for one in [*statements, rest] if has_words(one)]


@given(TEXTS)
@example("SELECT /* open")
@example("SELECT 'open")
def test_colours_leave_the_text_as_it_is(text: str) -> None:
    assert "".join(part for _, part in marked(text)) == text


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT 1; SELECT", False),
        ("\\d", True),
        ("SELECT /* ; ", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_pieces_have_the_numbers_of_their_lines() -> None:
    pieces = list(read_pieces(["-- a comment\n", "\n", "SELECT\n", "1; SELECT 2;\n", "\\d\n", "X"]))
    assert [(one.text, one.line) for one in pieces] == [
        ("-- a comment\n\nSELECT\n1", 1),
        ("SELECT 2", 4),
        ("\\d", 5),
        ("X", 6),
    ]


def test_commands_are_read() -> None:
    assert read_command("\\d;").name == "d"
    assert read_command("\\d My Stream").rest == "My Stream"
    assert read_command("\\quit").name == "q"
    assert read_command("\\o 'a b.csv'").words == ("a b.csv",)
    with pytest.raises(InputError, match="there is no command") as caught:
        read_command("\\wathc 3")
    assert "watch" in str(caught.value)
    with pytest.raises(InputError, match="takes no argument"):
        read_command("\\q now")
    for name in COMMANDS:
        assert f"\\{name}" in help_text()


SECRET = (
    "CREATE STREAM A (v INT) FROM mqtt WITH (password = 'hunter2')",
    "CREATE STREAM A (v INT) FROM mqtt WITH (address = 'mqtt://ann:hunter2@host/x')",
    'INSERT INTO Rooms VALUES (1, \'{"address": "tcp://h", "api_key": "hunter2"}\')',
    "INSERT INTO Rooms VALUES (1, 'http://h/x?token=hunter2')",
    "\\set token hunter2",
    "SELECT 'nm_hunter2'",
)
PLAIN = (
    "SELECT room, AVG(heat) FROM Readings [RANGE 1 MINUTE] GROUP BY room;",
    "CREATE STREAM A (v INT) FROM mqtt WITH (password = secret('MQTT'))",
)


def test_secrets_are_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state" / "nilometer" / "history"
    monkeypatch.delenv("NILOMETER_HISTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    history = open_history()
    assert isinstance(history, SafeHistory)
    for text in (*SECRET, *PLAIN):
        assert holds_secret(text) is (text in SECRET), text
        history.append_string(text)
    assert "hunter2" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(open_history().load_history_strings()) == list(reversed(PLAIN))


def test_a_history_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "history"
    for setting in ("", str(tmp_path), "/proc/nothing/history"):
        monkeypatch.setenv("NILOMETER_HISTORY", setting)
        history = open_history()
        assert not isinstance(history, SafeHistory)
        history.append_string("SELECT 1;")
    monkeypatch.setenv("NILOMETER_HISTORY", str(file))
    file.write_text("")
    file.chmod(0o644)
    open_history().append_string("SELECT 1;")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    os.symlink(tmp_path / "elsewhere", file)
    assert not isinstance(open_history(), SafeHistory)


def test_a_long_history_is_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "history"
    monkeypatch.setenv("NILOMETER_HISTORY", str(file))
    file.write_text("".join(f"\n# 2026-01-31\n+SELECT {n};\n" for n in range(60_000)))
    lines = list(open_history().load_history_strings())
    assert file.stat().st_size < 1 << 20
    assert lines == [f"SELECT {n};" for n in range(59_999, 59_999 - len(lines), -1)]
    assert len(lines) > 20_000
