"""Notebooks: rows as HTML, and the magic %%nilometer in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from nilometer.client import LiveAnswer, Rows
from nilometer.log.layout import LogLayout
from nilometer.log.writer import LogWriter
from nilometer.sensors.catalog.outcome import Outcome
from tests.asked_server import Asked, asked_server
from tests.patience import LONG
from tests.results_server import QUICK, ROWS, numbered


class _Seen(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not attrs
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


HOSTILE = st.text(alphabet="<>&\"'/scriptonad=;# \0é", max_size=30)


@given(HOSTILE.filter(str.strip), HOSTILE, HOSTILE)
def test_nothing_that_is_shown_is_a_tag(name: str, value: str, message: str) -> None:
    page = Rows(pa.table({name: [value]}), message)._repr_html_()
    assert _Seen(page).tags <= {"table", "thead", "tbody", "tr", "th", "td", "p"}


def test_a_table_is_small_and_says_what_is_left_out() -> None:
    many = pa.table({f"c{at}": list(range(1000)) for at in range(50)})
    page = Rows(many, is_cut=True)._repr_html_()
    assert page.count("<tr>") == 21
    left_out = "980 of them not shown, 20 columns not shown, the server has more"
    assert page.endswith(f"<p>1000 rows, {left_out}</p>")
    long = Rows(pa.table({"s": ["x" * 100_000, None]}))._repr_html_()
    assert len(long) < 1000
    assert "<td>NULL</td>" in long
    assert Rows(pa.table({}), "table T created")._repr_html_() == "<p>table T created</p>"


class _Published(CapturingDisplayPublisher):
    """What the front end was told, in order; None: clear what is there when more comes."""

    def clear_output(self, wait: bool = False) -> None:
        assert wait
        self.outputs.append(None)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    with asked_server(tmp_path) as running:
        monkeypatch.setenv("NILOMETER_TOKEN", running.server.secrets["admin"])
        yield running


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(display_pub_class=_Published)
    made.history_manager.enabled = False
    made.run_line_magic("load_ext", "nilometer")
    yield made
    made.magics_manager.registry["NilometerMagics"].close()
    InteractiveShell.clear_instance()


def test_cells_are_run_by_a_server(asked: Asked, shell: InteractiveShell) -> None:
    assert shell.run_cell(f"%nilometer connect {asked.url}").success
    done = shell.run_cell("%%nilometer answer\nSHOW TABLES")
    assert done.success
    assert shell.user_ns["answer"] is done.result
    assert "<td>T</td>" in done.result._repr_html_()
    said, cleared = shell.display_pub.outputs
    assert said["data"]["text/html"] == f"<p>waiting for {asked.url}: SHOW TABLES …</p>"
    assert cleared is None


def test_errors_are_kind(
    asked: Asked, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not shell.run_cell("%%nilometer\nSHOW TABLES").success
    assert "write %nilometer connect URL" in "".join(capsys.readouterr())
    shell.run_cell(f"%nilometer connect {asked.url}")
    assert not shell.run_cell("%%nilometer\nSHOW TABELS").success
    said = "".join(capsys.readouterr())
    assert "line 1, column" in said
    assert "Traceback" not in said
    for line in ("connect", "open x y", "connect http://127.0.0.1:9"):
        assert not shell.run_cell(f"%nilometer {line}").success
        assert "Traceback" not in "".join(capsys.readouterr())
    assert not shell.run_cell("%%nilometer a-b\nSHOW TABLES").success
    assert shell.display_pub.outputs[-1] is None


def test_a_query_that_goes_on_is_live(asked: Asked, shell: InteractiveShell) -> None:
    shell.run_cell(f"%nilometer connect {asked.url}")
    layout = LogLayout(ROWS, "_time")
    with LogWriter.open(asked.log_of("run_00000000"), layout, QUICK) as log:
        log.append(numbered(0, 2))
        cell = "%%nilometer now\nSELECT n FROM STREAMED [RANGE 1 SECOND]"
        first = shell.run_cell(cell).result
        assert isinstance(first, LiveAnswer)
        assert [row["n"] for row in first.wait(timeout=LONG)] == [0, 1]
        assert "<p>2 rows</p>" in shell.display_pub.outputs[-1]["data"]["text/html"]
        asked.server.database.kept.clear()
        again = shell.run_cell(cell).result
        assert first.is_closed
        assert shell.user_ns["now"] is again
        assert not again.is_closed
        shell.run_cell(f"%nilometer connect {asked.url}")
        assert again.is_closed


def test_a_folder_of_files(
    tmp_path: Path, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "Rooms.csv").write_text("id,name\n1,hall\n2,<b>bath</b>\n")
    (folder / "notes.txt").write_text("not a table")
    readings = pa.table(
        {"room": [1, 2, 1], "ts": pa.array([0, 4_000_000, 9_000_000], pa.timestamp("us", "UTC"))}
    )
    pq.write_table(readings, folder / "Readings.parquet")
    assert shell.run_cell(f"%nilometer open '{folder}' ts").success
    done = shell.run_cell("%%nilometer\nSELECT id, name FROM Rooms ORDER BY id DESC")
    assert list(done.result) == [{"id": 2, "name": "<b>bath</b>"}, {"id": 1, "name": "hall"}]
    done = shell.run_cell(
        "%%nilometer pairs\n"
        "SELECT A.room FROM Readings A, Readings B WINDOW = 5 SECONDS WHERE A.ts < B.ts"
    )
    assert len(done.result) == 2
    assert shell.user_ns["pairs"] is done.result
    assert shell.run_cell(f"%nilometer open '{folder}'").success
    assert not shell.run_cell("%%nilometer\nSELECT nothing FROM Rooms").success
    capsys.readouterr()
    (tmp_path / "empty").mkdir()
    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / "catalog.sqlite").touch()
    for line, said in (
        (f"'{folder}' when", "has a column when"),
        (str(tmp_path / "empty"), "there are no files in"),
        (str(tmp_path / "none"), "there is no folder"),
        (str(tmp_path / "stored"), "is a stored database"),
    ):
        assert not shell.run_cell(f"%nilometer open {line}").success
        output = "".join(capsys.readouterr())
        assert said in output
        assert "Traceback" not in output
    assert shell.run_cell("%%nilometer\nSELECT id FROM Rooms").success


def test_other_answers_are_shown_as_tables(shell: InteractiveShell) -> None:
    table = pa.table({"v": ["<i>"]})
    show = shell.display_formatter.format
    expected = "<table><thead><tr><th>v</th></tr></thead><tbody><tr><td>&lt;i&gt;</td></tr>"
    assert show(table)[0]["text/html"].startswith(expected)
    assert show(Outcome("done & said"))[0]["text/html"] == "<p>done &amp; said</p>"
    assert "<th>v</th>" in show(Outcome("rows", table))[0]["text/html"]
