"""`%load_ext nilometer`: statements in notebook cells, and answers as small tables."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import clear_output, display

from nilometer.client import Client, LiveAnswer, Rows
from nilometer.client.html_table import html_table, html_text
from nilometer.errors import GoesOnError, InputError, NilometerError

if TYPE_CHECKING:
    from nilometer.local.embedded import EmbeddedDatabase

_HOW: Final = (
    "write %nilometer connect URL or %nilometer open FOLDER, and then a cell that begins with "
    "%%nilometer or, to keep the rows, %%nilometer NAME"
)


@magics_class
class NilometerMagics(Magics):  # type: ignore[misc, unused-ignore]
    """`%nilometer connect URL`, `%nilometer open FOLDER`, and `%%nilometer [name]`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.client: Client | None = None
        self._files: EmbeddedDatabase | None = None
        self._place = ""
        self._names: dict[str, Any] = shell.user_ns
        self._live: dict[str, LiveAnswer] = {}
        _show_tables(shell)

    @line_cell_magic  # type: ignore[untyped-decorator, unused-ignore]
    def nilometer(self, line: str, cell: str | None = None) -> Rows | LiveAnswer | None:
        """Connect to a server, or run the statements of a cell and show the last one's rows."""
        try:
            words = shlex.split(line)
            if cell is not None:
                return self._run(words, cell)
            match words:
                case ["connect", url]:
                    self._connect(url)
                case ["open", folder] | ["open", folder, _]:
                    self._open(folder, *words[2:])
                case _:
                    raise UsageError(_HOW)
        except NilometerError as error:
            raise UsageError(str(error)) from None
        except ValueError as error:
            raise UsageError(f"{error}; {_HOW}") from None
        return None

    def close(self) -> None:
        """Close the connection or database."""
        for live in self._live.values():
            live.close()
        for one in (self.client, self._files):
            if one is not None:
                one.close()
        self._live, self.client, self._files = {}, None, None

    def _connect(self, url: str) -> None:
        client = Client(url, os.environ.get("NILOMETER_TOKEN"))
        try:
            client.streams()  # a wrong address or token is reported now
        except NilometerError:
            client.close()
            raise
        self.close()
        self.client, self._place = client, url

    def _open(self, folder: str, time: str | None = None) -> None:
        from nilometer.local.folder import open_folder  # noqa: PLC0415  takes its time
        from nilometer.upkeep.places import is_database  # noqa: PLC0415

        place = Path(folder).expanduser()
        if is_database(place):
            raise InputError(
                f"{folder} is a stored database, which a server opens",
                hint=f"nilometer serve --db {folder}, and then %nilometer connect URL",
            )
        files = open_folder(place, time)
        self.close()
        self._files, self._place = files, folder

    def _run(self, words: list[str], cell: str) -> Rows | LiveAnswer:
        is_ready = self.client is not None or self._files is not None
        if not is_ready or len(words) > 1 or not all(map(str.isidentifier, words)):
            raise UsageError(_HOW)
        key = words[0] if words else cell
        if (before := self._live.pop(key, None)) is not None:
            before.close()  # the cell is run again
        with _waiting(f"waiting for {self._place}: {' '.join(cell.split())}"):
            answer = self._answer(cell)
        if isinstance(answer, LiveAnswer):
            self._live[key] = answer
        if words:
            self._names[words[0]] = answer
        return answer

    def _answer(self, cell: str) -> Rows | LiveAnswer:
        if self._files is not None:
            return Rows(self._files.sql(cell))
        assert self.client is not None
        try:
            return self.client.execute(cell)
        except GoesOnError:
            return self.client.query(cell).live()


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """Show in the cell what is being waited for, until the result replaces it."""
    shown = {"text/plain": f"{what} …", "text/html": f"<p>{html_text(what)} …</p>"}
    display(shown, raw=True)  # type: ignore[no-untyped-call, unused-ignore]
    try:
        yield
    finally:
        clear_output(wait=True)  # type: ignore[no-untyped-call, unused-ignore]


def _show_tables(shell: Any) -> None:
    """Let the notebook show answers that have no `_repr_html_` of their own as small tables."""
    forms = shell.display_formatter.formatters["text/html"]
    forms.for_type_by_name("pyarrow.lib", "Table", html_table)
    forms.for_type_by_name("nilometer.sensors.catalog.outcome", "Outcome", _outcome)


def _outcome(outcome: Any) -> str:
    if outcome.rows is None:
        return f"<p>{html_text(outcome.message)}</p>"
    return html_table(outcome.rows, outcome.message)
