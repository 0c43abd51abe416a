"""What the command line understands, without Spark."""

from __future__ import annotations

import gzip
import io
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from nilometer import cli
from nilometer.commands.destination import GrowingFile, open_output
from nilometer.commands.lines import lines_of
from nilometer.commands.options import (
    Follow,
    Format,
    Output,
    Source,
    read_durations,
    read_moment,
    read_sources,
    read_stream,
    read_table,
    require_follow,
)
from nilometer.commands.read_text import read_text
from nilometer.commands.row_order import read_order
from nilometer.commands.statements import split_statements
from nilometer.commands.tables import Heading, TableView
from nilometer.errors import DurationError, InputError, SqlError
from nilometer.local.find_files import FileKind, find_files
from nilometer.model.time_forms import EpochTimes, EpochUnit, WrittenTimes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=a.csv:ts", Source("A", Path("a.csv"), "ts")),
        ("A=/data/x=1/a.csv:event time", Source("A", Path("/data/x=1/a.csv"), "event time")),
        ("A = a:b/c.csv:ts", Source("A", Path("a:b/c.csv"), "ts")),
        ("A=a:b/folder", Source("A", Path("a:b/folder"))),
        ("A=folder", Source("A", Path("folder"))),
        ("A=a.csv:ts[epoch s]", Source("A", Path("a.csv"), "ts", EpochTimes(EpochUnit.SECONDS))),
        ("A=a.csv:t s [EPOCH ns]", Source("A", Path("a.csv"), "t s", EpochTimes(EpochUnit.NANOS))),
        (
            "A=a:b.csv:ts[format 'dd-MMM-yyyy H:mm:ss']",
            Source("A", Path("a:b.csv"), "ts", WrittenTimes("dd-MMM-yyyy H:mm:ss")),
        ),
        ("A=a.csv:x[1]", Source("A", Path("a.csv"), "x[1]")),
        ("A=a.csv:b .. e", Source("A", Path("a.csv"), "b", end="e")),
        (
            "A=a.csv:b..e[epoch s]",
            Source("A", Path("a.csv"), "b", EpochTimes(EpochUnit.SECONDS), "e"),
        ),
    ],
)
def test_a_stream_is_a_name_a_path_and_a_time_column(text: str, expected: Source) -> None:
    assert read_stream(text) == expected


@pytest.mark.parametrize("text", ["a.csv", "=a.csv:ts", "A=", "A=:ts", "A=a.csv:"])
def test_a_stream_that_cannot_be_read_shows_how_to_write_it(text: str) -> None:
    with pytest.raises(InputError, match="cannot read --stream") as caught:
        read_stream(text)
    assert "A=camera1.csv:ts" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=a.csv:ts[epoch]", "numbers cannot count nothing since 1970"),
        ("A=a.csv:ts[epoch days]", "numbers cannot count days since 1970"),
        ("A=a.csv:ts[format dd.MM.yyyy]", "cannot read --stream"),
        ("A=a.csv:ts[format 'dd.MM']", "cannot read times by the pattern 'dd.MM'"),
        ("A=[epoch s]", "cannot read --stream"),
    ],
)
def test_a_form_of_times_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_stream(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("ts,k,k", "two columns of {} are named k"),
        ("ts,k,K", "two columns of {} are named K"),
        ("ts,,k", "column 2 of {} has no name"),
        ("ts,k,", "column 3 of {} has no name"),
        ("ts;k", "the cells of {} are separated by semicolons"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("in_folder", [False, True])
def test_headers_that_cannot_be_read_by(
    tmp_path: Path, header: str, message: str, ending: str, in_folder: bool
) -> None:
    file = tmp_path / f"a.{ending}"
    content = f"\ufeff{header}\n1,2,3\n".encode()
    file.write_bytes(gzip.compress(content) if ending == "csv.gz" else content)
    with pytest.raises(InputError) as refused:
        find_files("A", tmp_path if in_folder else file)
    assert refused.value.message == message.format(file)


@pytest.mark.parametrize("header", ["a.b,my col,größe", '"a\nb",`c`,select', "", "a"])
def test_headers_of_odd_names_are_taken(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n", encoding="utf-8")
    assert find_files("A", tmp_path / "a.csv").kind is FileKind.CSV


def test_tables_have_no_time_column() -> None:
    assert read_table("T=a:b.csv") == Source("T", Path("a:b.csv"))
    with pytest.raises(InputError, match="only files on this machine"):
        read_table("T=s3a://bucket/t.csv")


def test_a_name_is_given_once() -> None:
    with pytest.raises(InputError, match="the name a is given twice"):
        read_sources(["A=x:ts"], ["a=y"])


def test_durations_for_all_streams_and_for_one() -> None:
    streams = read_sources(["A=x:ts", "B=y:ts"], []).streams
    assert read_durations("--idle", ["2s"], streams) == {"A": "2s", "B": "2s"}
    assert read_durations("--idle", ["a=1s"], streams) == {"A": "1s"}
    assert read_durations("--idle", ["b=1s", "5s"], streams) == {"A": "5s", "B": "1s"}
    with pytest.raises(InputError, match="--idle names no stream: C"):
        read_durations("--idle", ["C=1s"], streams)
    with pytest.raises(DurationError, match="cannot read a duration"):
        read_durations("--idle", ["A=soon"], streams)


def test_a_moment_is_an_instant_or_the_end() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for text in ("2026-01-01 12:00", "2026-01-01T12:00:00Z", " 2026-01-01 13:00:00+01:00 "):
        assert read_moment(text).instant == noon
    assert read_moment("END").instant is None
    with pytest.raises(InputError, match="cannot read --at") as caught:
        read_moment("noon")
    assert caught.value.detail == "got 'noon'"
    assert "or end" in str(caught.value.hint)


def test_an_answer_on_the_screen_has_no_checkpoint() -> None:
    with pytest.raises(InputError, match="--answer and --checkpoint do not go together"):
        Follow(checkpoint=Path("there"), answer=True)


COUNTED = [Heading("store"), Heading("n", is_number=True)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("", [(None, "9"), ("a", None), ("a", "9"), ("b", "10")]),
        ("ORDER BY n DESC LIMIT 9", [("b", "10"), (None, "9"), ("a", "9"), ("a", None)]),
        ("ORDER BY 2 LIMIT 9", [("a", None), (None, "9"), ("a", "9"), ("b", "10")]),
        (
            "ORDER BY S.store DESC NULLS FIRST LIMIT 9",
            [(None, "9"), ("b", "10"), ("a", None), ("a", "9")],
        ),
        ("ORDER BY n + 1 LIMIT 9", [(None, "9"), ("a", None), ("a", "9"), ("b", "10")]),
    ],
)
def test_answers_stand_in_the_order_that_is_asked_for(
    order: str, expected: list[tuple[str | None, ...]]
) -> None:
    rows = [("a", "9"), ("b", "10"), (None, "9"), ("a", None)]
    ordered = read_order(f"SELECT store, n FROM S [ROWS 5] {order}", COUNTED).sort(rows)
    assert ordered == expected


def test_times_keep_their_digits_from_step_to_step() -> None:
    screen = Console(width=80, record=True, file=io.StringIO())
    view = TableView(screen, [Heading("t", is_time=True)])
    view.show([("2026-01-01 12:00:00.000001",)])
    view.show([("2026-01-01 12:00:01.5",), (None,)])
    lines = [line.strip() for line in screen.export_text().splitlines()]
    assert lines[2:] == ["2026-01-01 12:00:00.000001", "2026-01-01 12:00:01.500000", "NULL"]


def test_changes_have_a_sign() -> None:
    screen = Console(width=80, record=True, file=io.StringIO())
    headings = [Heading("k"), Heading("_diff", is_number=True, is_change=True)]
    TableView(screen, headings).show([("a", "2"), ("b", "-1")])
    lines = screen.export_text().splitlines()
    assert [line.split() for line in lines[2:]] == [["a", "+2"], ["b", "-1"]]


def test_options_of_streams_that_go_on_need_follow() -> None:
    require_follow({"--lateness": [], "--checkpoint": None})
    with pytest.raises(InputError, match="--lateness is only for continuous queries"):
        require_follow({"--lateness": ["2s"]})


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Parquet cannot be written to the screen"):
        Output(Format.PARQUET)
    with pytest.raises(InputError, match="it is a folder"):
        Output(Format.CSV, tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        Output(Format.CSV, tmp_path / "no" / "out.csv")


def test_files_are_recognised_by_their_names(tmp_path: Path) -> None:
    for name in ("a.csv", "b.CSV.gz", "notes.txt", "_SUCCESS", ".hidden.json"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=f"the files for A in {tmp_path} are empty"):
        find_files("A", tmp_path)
    with pytest.raises(InputError, match="a.csv for A is empty"):
        find_files("A", tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("ts,v\n")
    files = find_files("A", tmp_path)
    assert files.kind is FileKind.CSV
    assert files.pattern == "*{.csv,.csv.gz,.CSV,.CSV.GZ}"
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "c.ndjson").touch()
    with pytest.raises(InputError, match="of several kinds") as caught:
        find_files("A", tmp_path)
    assert caught.value.detail == "there are csv and json"
    with pytest.raises(InputError, match="cannot tell the format of"):
        find_files("A", tmp_path / "notes.txt")
    with pytest.raises(InputError, match="there is no file or folder"):
        find_files("A", tmp_path / "nothing.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there are no files for A"):
        find_files("A", tmp_path / "empty")


def test_statements_are_cut_where_the_parser_says_and_keep_their_places() -> None:
    text = "SELECT ';' FROM A; -- one; two\n\nEXPLAIN SELECT 2 FROM B;\n;"
    first, second = split_statements(text)
    assert (first.sql, first.is_explain) == ("SELECT ';' FROM A", False)
    assert second.is_explain
    assert second.sql.count("\n") == 2
    assert second.sql.split("\n")[2] == "EXPLAIN SELECT 2 FROM B"
    with pytest.raises(InputError, match="there is no statement"):
        split_statements(" -- nothing\n")
    with pytest.raises(SqlError, match="cannot read"):
        split_statements("SELECT 1; SELECT FROM WHERE")


def test_a_text_comes_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert read_text(None, str(tmp_path / "q.sql")) == "SELECT 1"
    for statement, file, detail in ((None, None, "got neither"), ("x", "y", "got both")):
        with pytest.raises(InputError) as caught:
            read_text(statement, file)
        assert caught.value.detail == detail
    with pytest.raises(InputError, match="cannot read"):
        read_text(None, str(tmp_path / "none.sql"))


def test_csv_is_quoted_where_it_must_be() -> None:
    values = ["plain", "a,b", 'say "x"', "two\nlines", "", None, "ü "]
    batch = pa.record_batch({"c0": values, "c1": ["1"] * len(values)})
    assert lines_of(batch, None).to_pybytes().decode() == (
        'plain,1\n"a,b",1\n"say ""x""",1\n"two\nlines",1\n"",1\n,1\nü ,1\n'
    )
    assert lines_of(batch.slice(0, 0), None).to_pybytes() == b""
    assert lines_of(batch.slice(5, 1), None).to_pybytes() == b",1\n"


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    with suppress(ZeroDivisionError), open_output(path) as out:
        out.write(b"half")
        _ = 1 / 0
    assert path.read_text() == "before"
    with open_output(path) as out:
        out.write(b"whole")
    assert path.read_text() == "whole"
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def test_a_micro_batch_that_runs_again_writes_its_rows_once(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "out.csv", tmp_path / "checkpoint"
    checkpoint.mkdir()
    path.write_text("of another query")

    def add(batch: int, rows: bytes) -> None:
        with GrowingFile(path, checkpoint).open(batch) as out:
            out.write(rows)

    add(0, b"a\n")
    add(1, b"b\n")
    add(1, b"c\n")
    add(1, b"b\nd\n")
    add(2, b"e\n")
    assert path.read_bytes() == b"a\nb\nd\ne\n"


def shown(headings: list[Heading], *steps: list[tuple[str | None, ...]], width: int = 0) -> str:
    console = Console(width=width or 80, force_terminal=bool(width), color_system=None)
    view = TableView(console, headings)
    with console.capture() as captured:
        for rows in steps:
            view.show(rows)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def test_tables_show_nulls_and_align_numbers_and_take_data_as_it_is() -> None:
    headings = [Heading("n", is_number=True), Heading("[red]t", is_time=True), Heading("s")]
    rows = [
        ("1", "2026-01-01 00:00:00", "[bold]:smile:"),
        ("100", "2026-01-01 00:00:00.25", None),
        (None, None, "a\n\x1b[31mb" + "x" * 300),
    ]
    lines = shown(headings, rows).splitlines()
    assert lines[0] == "   n   [red]t                    s"
    assert lines[2] == "   1   2026-01-01 00:00:00.000   [bold]:smile:"
    assert lines[3] == " 100   2026-01-01 00:00:00.250   NULL"
    assert lines[4].startswith("NULL   NULL                      a\\n\\x1b[31mbxxx")
    assert lines[4].endswith("x…")


def test_headings_come_again_only_when_columns_grow() -> None:
    text = shown([Heading("k")], [("1",)], [("2",)], [("333",)])
    assert text.splitlines() == ["k", "─", "1", "2", "k", "───", "333"]


def test_rows_wider_than_the_terminal_are_shown_as_records() -> None:
    text = shown([Heading("first"), Heading("second")], [("x" * 30, None)], width=24)
    assert text.splitlines() == [
        "first   " + "x" * 16,
        "        " + "x" * 14,
        "second  NULL",
        "─" * 20,
    ]


def test_a_table_of_a_thousand_columns_is_quick() -> None:
    headings = [Heading(f"column {i}") for i in range(1000)]
    assert shown(headings, [tuple("x" for _ in headings)] * 5).count("\n") == 6


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nilometer", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_errors_are_printed_in_words_with_all_their_brackets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, "sql", "SELECT 1", "--stream", "[A]") == 1
    assert capsys.readouterr().err == (
        "error: cannot read --stream\n  detail: got '[A]'\n"
        "  hint: write --stream A=camera1.csv:ts\n"
    )


def test_what_nobody_foresaw_is_no_traceback_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail() -> None:
        raise ValueError("oops\nmore")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run_main(monkeypatch) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: this should not have happened\n  detail: ValueError: oops\n")
    [report] = tmp_path.iterdir()
    assert "Traceback" in report.read_text()
    assert str(report) in error


def test_the_help_page_has_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, "sql", "--help") == 0
    page = capsys.readouterr().out
    assert "nilometer sql --stream A=camera1.csv:ts" in page
    for option in ("--table", "--follow", "--catch-up", "--lateness", "--checkpoint", "--limit"):
        assert option in page
