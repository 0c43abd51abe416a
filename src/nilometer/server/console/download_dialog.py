"""A dialog that asks which rows to download, and the address of that file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote, urlencode

from fastapi import Depends, FastAPI
from nicegui import ui
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from nilometer.errors import ClosedError, ForbiddenError, NilometerError, in_one_line
from nilometer.server.console.access import Console, Visitor, session_of
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.results.download_formats import FileFormat
from nilometer.server.routes.downloads import Wanted, query_file, read_wanted, stream_file

_ADDRESS: Final = "/console/download"
_FORMATS: Final = {
    FileFormat.CSV.value: "CSV",
    FileFormat.JSON_LINES.value: "JSON, a row on each line",
    FileFormat.ARROW.value: "Arrow",
    FileFormat.PARQUET.value: "Parquet",
}
_ALL: Final = ""
_WAYS: Final = {
    _ALL: "all rows",
    "bucket": "minimum, maximum and mean of each …",
    "points": "only points that matter in a chart",
}


def add_downloads(app: FastAPI, console: Console) -> None:
    """Serve the API's files to visitors with a session."""

    @app.get(_ADDRESS + "/query/{name:path}", include_in_schema=False)
    async def of_query(
        name: str,
        request: Request,
        wanted: Annotated[Wanted, Depends(read_wanted)],
        answer: bool = False,
    ) -> Response:
        visitor = Visitor(console.sessions, session_of(request.cookies))
        if visitor.has_ended:
            return RedirectResponse("/login", 303)

        def ending() -> NilometerError | None:
            return _ending(console, visitor)

        return await query_file(console.service, name, visitor.asker, wanted, ending, answer=answer)

    @app.get(_ADDRESS + "/stream/{name:path}", include_in_schema=False)
    async def of_stream(
        name: str, request: Request, wanted: Annotated[Wanted, Depends(read_wanted)]
    ) -> Response:
        visitor = Visitor(console.sessions, session_of(request.cookies))
        if visitor.has_ended:
            return RedirectResponse("/login", 303)

        def ending() -> NilometerError | None:
            return _ending(console, visitor)

        return await stream_file(console.service, name, visitor.asker, wanted, ending)


def _ending(console: Console, visitor: Visitor) -> NilometerError | None:
    if console.service.is_closing:
        return ClosedError("the server is stopping")
    return ForbiddenError("the session has ended") if visitor.has_ended else None


def download_address(kind: str, name: str, fields: Mapping[str, str | Sequence[str]]) -> str:
    """The address of a file; empty values are omitted.

    >>> download_address("query", "a b", {"format": "csv", "per": ["k"], "start": ""})
    '/console/download/query/a%20b?format=csv&per=k'
    """
    filled = {name: value for name, value in fields.items() if value}
    return f"{_ADDRESS}/{kind}/{quote(name, safe='')}?{urlencode(filled, doseq=True)}"


def download_button(console: Console, kind: str, name: str) -> ui.button:
    """A button in the current place; `kind` is query or stream."""

    async def ask() -> None:
        try:
            source = await console.service.stored_source(name)
        except NilometerError as error:
            tell_problem(error)
            return
        DownloadDialog(console, kind, source.name, source.schema.names, source.changes)

    button = ui.button("Download", icon="download", on_click=ask, color=None)
    return button.props("no-caps flat dense").classes("nm-second nm-action")


class DownloadDialog:
    """Opens at once, and closes when the download starts."""

    def __init__(
        self, console: Console, kind: str, name: str, columns: Sequence[str], changes: bool
    ) -> None:
        self._console = console
        self._visitor = console.visitor()
        self._kind, self._name = kind, name
        with ui.dialog() as self._dialog, ui.card().classes("nm-dialog nm-form-card"):
            ui.label(f"Download {name}").classes("nm-title").props("role=heading aria-level=2")
            with ui.element("div").classes("nm-fields"):
                self._draw_fields(list(columns), changes)
            self._problem = ui.label().classes("nm-bad nm-small").props("role=alert")
            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Cancel", color=None, on_click=self._dialog.close).props("flat no-caps")
                self._button = ui.button("Download it", color=None, on_click=self._try)
                self._button.classes("nm-first").props("unelevated no-caps")
        self._dialog.on("hide", self._dialog.delete)
        self._dialog.open()

    def _draw_fields(self, columns: list[str], changes: bool) -> None:
        self._form = ui.select(_FORMATS, value="csv", label="Format")
        self._start = ui.input("From (UTC)", placeholder="the first, or 2026-01-31 12:00")
        self._end = ui.input("To (UTC)", placeholder="the last, or 2026-01-31 13:00")
        self._way = ui.select(_WAYS, value=_ALL, label="Rows")
        self._bucket = ui.input("Each", value="1 minute")
        self._points = ui.number("Points of each series", value=1000, min=3, max=100_000)
        self._columns = ui.select(columns, label="Columns (empty: all)", multiple=True)
        self._per = ui.select(columns, label="Series: for each (may be empty)", multiple=True)
        for one in (
            *(self._form, self._start, self._end, self._way),
            *(self._bucket, self._points, self._columns, self._per),
        ):
            one.props("dense outlined stack-label")
            one.on_value_change(self._forget_problem)
        for many in (self._columns, self._per):
            many.props("use-chips")
        self._answer = ui.checkbox("The current answer, not its changes").props("dense")
        self._answer.visible = changes
        self._way.on_value_change(self._offer)
        self._offer()

    def _forget_problem(self) -> None:
        self._problem.text = ""

    def _offer(self) -> None:
        way = self._way.value
        self._bucket.visible = way == "bucket"
        self._points.visible = way == "points"
        self._per.visible = way != _ALL

    @property
    def address(self) -> str:
        """The address of the requested file."""
        way = self._way.value
        fields: dict[str, str | Sequence[str]] = {
            "format": str(self._form.value),
            "start": (self._start.value or "").strip(),
            "end": (self._end.value or "").strip(),
            "columns": list(self._columns.value or ()),
            "per": list(self._per.value or ()) if way != _ALL else (),
            "bucket": (self._bucket.value or "").strip() if way == "bucket" else "",
            "points": str(int(self._points.value or 0)) if way == "points" else "",
            "answer": "true" if self._answer.value else "",
        }
        return download_address(self._kind, self._name, fields)

    async def _try(self) -> None:
        """Start the download, or show why it is not possible."""
        self._button.props("loading")
        try:
            await self._begin_once()
        except NilometerError as error:
            self._problem.text = in_one_line(error)
            return
        finally:
            self._button.props(remove="loading")
        ui.navigate.to(self.address)
        self._dialog.close()

    async def _begin_once(self) -> None:
        """Start the file and discard it: a browser would replace this page by an error."""
        way = self._way.value
        wanted = read_wanted(
            FileFormat(str(self._form.value)),
            (self._start.value or "").strip(),
            (self._end.value or "").strip(),
            list(self._columns.value or ()),
            list(self._per.value or ()) if way != _ALL else [],
            (self._bucket.value or "1 minute").strip() if way == "bucket" else None,
            int(self._points.value or 3) if way == "points" else None,
        )
        pieces, release = await self._console.service.download(
            self._name,
            self._visitor.asker,
            wanted.form,
            wanted.bounds,
            wanted.thinning,
            ending=lambda: None,
            answer=bool(self._answer.value),
        )
        await pieces.aclose()
        release()
