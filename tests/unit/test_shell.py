"""`nilometer shell`: from a pipe, from a file, and typed on a terminal."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.commands import follow_results
from nilometer.commands.arrow_answer import ArrowAnswer
from nilometer.commands.options import Format
from nilometer.commands.server_access import Server
from nilometer.commands.shell.catalog import Listed, Names, as_table, list_all, state_of
from nilometer.commands.shell.completion import StatementCompleter
from nilometer.commands.shell.display import Display, new_console
from nilometer.commands.shell.interrupts import GivenUpError, run_until_interrupted
from nilometer.commands.shell.paging import Paged
from nilometer.commands.shell.place import Place, StatementResult
from nilometer.commands.shell.server_place import ServerPlace
from nilometer.commands.shell.session import LeaveError, Shell
from nilometer.commands.shell.terminal import Terminal
from nilometer.errors import InputError
from tests.asked_server import Asked, asked_server
from tests.patience import LONG, wait_for
from tests.results_server import ROWS, numbered


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    with asked_server(tmp_path) as server:
        yield server


class Typed:
    """A shell whose screen is a text."""

    def __init__(self, asked: Asked) -> None:
        token = asked.server.secrets["admin"]
        self.out, self.err = io.StringIO(), io.StringIO()
        display = Display(new_console(self.out))
        errors = new_console(self.err)
        self.shell = Shell(ServerPlace(Server(asked.url, token)), display, errors)

    def run(self, text: str, *, well: bool = True) -> str:
        """What the shell shows for a text."""
        begun, err_begun = len(self.out.getvalue()), len(self.err.getvalue())
        is_well = self.shell.run(text.splitlines(keepends=True), "here.sql")
        assert is_well is well, self.err.getvalue()
        return self.out.getvalue()[begun:] if well else self.err.getvalue()[err_begun:]


@pytest.fixture
def typed(asked: Asked) -> Iterator[Typed]:
    made = Typed(asked)
    yield made
    made.shell.place.close()


def piped(asked: Asked, text: str, *options: str) -> Any:
    token = {"NILOMETER_TOKEN": asked.server.secrets["admin"]}
    words = ["shell", "--server", asked.url, *options]
    return CliRunner(env=token).invoke(app, words, input=text)


def test_statements_through_a_pipe(asked: Asked) -> None:
    done = piped(asked, "CREATE TABLE U (k\nINT); INSERT INTO U VALUES (1);\nDESCRIBE U;\n")
    assert done.exit_code == 0
    assert "created table U" in done.stdout
    assert "INT" in done.stdout


def test_the_first_error_ends_it(asked: Asked, tmp_path: Path) -> None:
    text = "SHOW TABLES;\n\nDROP TABLE\n  Nothing;\nCREATE TABLE U (k INT);\n"
    done = piped(asked, text)
    assert done.exit_code == 1
    assert "stdin:4: error: " in done.stderr
    assert "line 4, column 3:" in done.stderr
    assert "^^^^^^^" in done.stderr
    assert asked.server.catalog.table("U") is None
    file = tmp_path / "statements.sql"
    file.write_text(text)
    done = piped(asked, "", "--keep-going", "-f", str(file))
    assert done.exit_code == 1
    assert f"{file}:4: error: " in done.stderr
    assert asked.server.catalog.table("U") is not None
    assert piped(asked, "\\q\nnonsense;\n").exit_code == 0
    assert isinstance(piped(asked, "", "-f", "nowhere.sql").exception, InputError)
    assert isinstance(piped(asked, "", "--format=parquet").exception, InputError)


def test_csv_through_a_pipe(asked: Asked) -> None:
    asked.server.database.answer = pa.table({"n": range(20_000)})
    done = piped(asked, "SELECT n FROM T;", "--format=csv")
    assert len(done.stdout.splitlines()) == 10_001
    assert "there are more rows" in done.stderr


def test_what_there_is(typed: Typed, asked: Asked) -> None:
    asked.query("hot", ROWS).close()
    listed = typed.run("\\d")
    assert [line.split()[0] for line in listed.splitlines()[2:]] == ["Rooms", "T", "hot", "3"]
    assert "reading" in typed.run("\\d Rooms")
    long = as_table([Listed("q", "query", "running: SELECT a FROM S" + " " * 200)])
    assert len(long["about"][0].as_py()) == 50  # a list that fits on a screen
    doing = {"sensors": 3, "connected": 2, "readers": 1, "rows": 7, "stored_bytes": 10**6}
    more = {"watermark": datetime(2026, 1, 31, tzinfo=UTC), "held_by": "x\x1b", "full": True}
    place = SimpleNamespace(look=lambda _: pa.Table.from_pylist([{"name": "A", **doing, **more}]))
    text = state_of(cast(Place, place), "a")
    assert text is not None
    assert text.startswith("A: 2 of 3 sensors connected, 1 reader, 7 rows ever, 1.0 MB stored")
    assert "STRING" in typed.run("\\d `T`")
    assert "kind" in typed.run("\\dt")
    assert "sensor table" in typed.run("\\ds")
    text = typed.run("\\d Nothing", well=False)
    assert "there is no" in text
    assert "there is no command \\nothing" in typed.run("\\nothing", well=False)


def test_how_answers_look(typed: Typed, tmp_path: Path) -> None:
    query = "SELECT v FROM T;"
    assert typed.run(query).splitlines()[0].strip() == "v"
    assert typed.run(f"\\x on\n{query}").splitlines()[0].startswith("v  <script>")
    assert typed.shell.run(["\\x off\n", "\\limit 1\n"])
    out = tmp_path / "out file.txt"
    assert typed.run(f"\\o '{out}'\n{query}") == ""
    assert typed.shell.run(["\\f csv\n", query, "\n\\o\n", "\\f table\n"])
    assert out.read_text().splitlines()[-2:] == ["v", "<script>alert(1)</script>"]
    assert "1 row" in out.read_text()
    assert "1 row" in typed.run(query)
    for wrong in ("\\o /nowhere/x", "\\f parquet", "\\limit none", "\\x maybe", "\\watch 0"):
        assert "error: " in typed.run(wrong, well=False)


def test_long_answers_are_cut(typed: Typed, asked: Asked) -> None:
    asked.server.database.answer = pa.table({"n": range(5_000)})
    shown = typed.run("SELECT n FROM T;")
    assert len(shown.splitlines()) == 1003
    assert "1,000 of 5,000 rows; \\limit 5000 shows the other 4,000" in shown


def test_values_of_parameters(typed: Typed, asked: Asked) -> None:
    typed.run("\\set k 7\n\\set name it's\n\\set gone 1\n\\set gone")
    assert typed.run("\\set").splitlines() == [":k = 7", ':name = "it\'s"']
    typed.run("INSERT INTO T VALUES (:k, :name);")
    rows = asked.server.catalog.table("T")
    assert rows is not None
    assert rows.to_pylist()[-1] == {"k": 7, "s": "it's"}
    assert "letters, digits" in typed.run("\\set 1x 2", well=False)


def test_files_within_files(typed: Typed, tmp_path: Path) -> None:
    inner, outer, endless = (tmp_path / one for one in ("inner.sql", "outer.sql", "endless.sql"))
    inner.write_text("CREATE TABLE FromFile (k INT);\nDROP TABLE Nothing;\n")
    outer.write_text(f"\\i {inner}\n")
    text = typed.run(f"\\i {outer}", well=False)
    assert f"{inner}:2: error: " in text
    assert "FromFile" in typed.run("\\d")
    endless.write_text(f"\\i {endless}\n")
    assert "include each other recursively" in typed.run(f"\\i {endless}", well=False)


def test_hostile_data_does_not_reach_the_terminal(typed: Typed, asked: Asked) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r\n"
    asked.server.database.answer = pa.table({f"c{hostile}": [hostile], "l": [[hostile]]})
    asked.server.database.failure = InputError(f"no {hostile}", hint=hostile)
    shown = typed.run("SELECT * FROM T;") + typed.run("\\x\nSELECT * FROM T;")
    shown += typed.run("SHOW TABLES;", well=False)
    shown += typed.run(f"SELECT 1{hostile} FROM;", well=False)
    assert not set(shown) & set("\x1b\x07\x9b\u202e\r")
    assert "owned" in shown


def test_queries_over_streams(typed: Typed, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\\follow NAME" in typed.run("SELECT v FROM STREAM;", well=False)
    typed.shell.is_interactive = True
    stops = [threading.Event(), threading.Event()]

    @contextmanager
    def signals() -> Iterator[list[threading.Event]]:
        yield stops

    monkeypatch.setattr(follow_results, "stop_signals", signals)
    with asked.query("q", ROWS) as log:
        log.append(numbered(0, 25))
        following = threading.Thread(target=lambda: typed.run("\\follow q"))
        following.start()
        wait_for(lambda: "24" in typed.out.getvalue())
        log.append(numbered(100, 1))
        wait_for(lambda: "100" in typed.out.getvalue())
        stops[0].set()
        following.join(LONG)
    first = typed.out.getvalue().splitlines()[2].split()[0]
    assert first == "15"  # the newest ten
    assert "there is no query nothing" in typed.run("\\follow nothing", well=False)
    assert "the last statement was not a query" in typed.run("SHOW TABLES;\n\\follow", well=False)


def test_ctrl_c_gives_up_a_statement() -> None:
    cancelled = threading.Event()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(GivenUpError):
        run_until_interrupted(lambda: cancelled.wait(LONG), cancelled.set)
    assert cancelled.is_set()
    assert run_until_interrupted(lambda: 7, cancelled.set) == 7
    with pytest.raises(TimeoutError):  # of the work itself
        run_until_interrupted(lambda: _raise(TimeoutError()), cancelled.set)


def _raise(error: Exception) -> None:
    raise error


def test_the_server_answers_after_a_statement_was_given_up(typed: Typed, asked: Asked) -> None:
    typed.shell.is_interactive = True
    asked.server.database.gate.clear()
    running = lambda: asked.server.service.statements_taken  # noqa: E731
    threading.Thread(target=_interrupt_when, args=(running,)).start()
    assert "interrupted" in typed.run("SHOW TABLES;", well=False)
    asked.server.database.gate.set()
    assert "kind" in typed.run("SHOW TABLES;")


def test_watching(typed: Typed) -> None:
    typed.shell.is_interactive = True
    assert "no statement yet" in typed.run("\\watch", well=False)
    typed.run("SHOW TABLES;")
    ending = threading.Thread(
        target=_interrupt_when, args=(lambda: typed.err.getvalue().count("every") > 2,)
    )
    ending.start()
    assert typed.run("\\watch 0.1").count("kind") >= 2


def _interrupt_when(condition: Any) -> None:
    wait_for(condition)
    os.kill(os.getpid(), signal.SIGINT)


class Playing:
    """A terminal on which a test types."""

    def __init__(self, typed: Typed, keys: str) -> None:
        self.history = InMemoryHistory()
        with create_pipe_input() as keyboard:
            keyboard.send_text(keys)
            terminal = Terminal(typed.shell, self.history, keyboard, DummyOutput())
            typed.shell.is_interactive = True
            with create_app_session(input=keyboard, output=DummyOutput()):
                terminal.run(list_all(typed.shell.place))
        self.shown, self.errors = typed.out.getvalue(), typed.err.getvalue()


def test_typing(typed: Typed) -> None:
    played = Playing(
        typed,
        "SELECT v\rFROM T;\r"  # two lines
        "half a statement\x03"  # Ctrl-C
        "SELECT ';'\r AS a FROM Nothing\r;\r"
        "DROP TABLE Nothing; SHOW TABLES;\r"  # the first fails
        "\\q\r",
    )
    assert played.shown.startswith("Nilometer ")
    assert "1 sensor table, 1 table (\\d lists them)" in played.shown
    assert "<script>alert(1)</script>" in played.shown
    assert "Nothing" in played.errors
    assert "kind" not in played.shown
    assert played.history.get_strings()[0] == "SELECT v\nFROM T;"
    assert not any("half" in one for one in played.history.get_strings())


def test_ctrl_d_leaves(typed: Typed) -> None:
    played = Playing(typed, "\x04")
    assert "Help: \\?" in played.shown
    assert played.errors == ""


def test_an_editor(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; open(sys.argv[1], 'a').write(' -- edited\\n;')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    played = Playing(typed, "SHOW TABLES;\r\\e\r\r\\q\r")
    assert played.shown.count("kind") == 2
    assert played.history.get_strings()[-2] == "SHOW TABLES -- edited\n;"
    monkeypatch.setenv("EDITOR", "false")
    assert "ended with 1" in typed.run("SHOW TABLES;\n\\e", well=False)
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    assert "cannot edit with" in typed.run("\\e", well=False)


class Known:
    """A place that only knows names."""

    def look(self, statement: str) -> pa.Table:
        assert statement in ("DESCRIBE `Readings`", "DESCRIBE `odd\x1b name`", "DESCRIBE `hot`")
        return pa.table({"column": ["room", "Reading.heat"]})


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SELECT roo", ["room"]),
        ("SELECT * FROM Rea", ["Readings"]),
        ("SELECT * FROM Readings R, ho", ["hot"]),
        ("SELECT R.h| FROM Readings [RANGE 1 HOUR] AS R", ["heat"]),
        ("SELECT * FROM readings WHERE readings.", ["room", "heat"]),
        ("sel", ["select"]),
        ("SELECT 1 EMIT CH", ["EMIT CHANGES", "EMIT CHANGES EVERY"]),
        ("SELECT 1 group b", ["group by"]),
        ("SELECT pow", ["pow(", "power("]),
        ("DESCRIBE od", ["`odd\x1b name`"]),
        ("\\fol", ["follow"]),
        ("\\follow ", ["hot"]),
        ("SELECT 'Rea", []),
    ],
)
def test_completion(text: str, offered: list[str]) -> None:
    known = Known()
    listed = [Listed("Readings", "stream"), Listed("odd\x1b name", "table"), Listed("hot", "query")]
    completer = StatementCompleter(Names(known, listed))  # type: ignore[arg-type]
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    event = CompleteEvent(completion_requested=True)
    completions = list(completer.get_completions(document, event))
    assert list(dict.fromkeys(one.text for one in completions))[: len(offered) or None] == offered
    assert not any("\x1b" in one.display_text for one in completions)


def test_long_answers_go_through_a_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "taken"
    program = f"import sys; open('{taken}', 'w').write(sys.stdin.read())"
    monkeypatch.setenv("NILOMETER_PAGER", shlex.join([sys.executable, "-c", program]))
    screen = io.StringIO()
    console = new_console(screen)
    console._force_terminal, console._width, console._height = True, 80, 10
    Paged(console).show(lambda out: out.print("short"))
    assert screen.getvalue() == "short\n"
    assert not taken.exists()
    Paged(console).show(lambda out: out.print("long\n" * 20))
    assert taken.read_text().count("long") == 20
    assert screen.getvalue() == "short\n"
    monkeypatch.setenv("NILOMETER_PAGER", "/nowhere/pager")
    Paged(console).show(lambda out: out.print("long\n" * 20))
    assert screen.getvalue().count("long") == 20


def test_leaving_ends_files(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("\\q\nSHOW TABLES;\n")
    with pytest.raises(LeaveError):
        typed.shell.run([f"\\i {file}\n", "SHOW TABLES;\n"])
    assert typed.out.getvalue() == ""


def test_formats_that_tell_columns_by_name(typed: Typed) -> None:
    twice = pa.table([[1], [2]], names=["k", "K"])

    typed.shell.display.form = Format.JSONL
    with pytest.raises(InputError, match="two columns are named"):
        typed.shell.display.show(StatementResult(answer=ArrowAnswer(twice)))
