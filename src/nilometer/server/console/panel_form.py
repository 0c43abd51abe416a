"""The form of a panel: where its rows come from, which columns it shows, and how that looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import background_tasks, ui

from nilometer.errors import NilometerError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.model.dashboard import Combine, Panel, PanelKind, Source, SourceKind
from nilometer.server.console.access import Console
from nilometer.server.console.live_elements import TOGGLE
from nilometer.server.console.panel_body import PanelBody
from nilometer.server.dashboards.panel_picture import read_panel
from nilometer.server.dashboards.panel_source import PanelSource, open_source
from nilometer.server.dashboards.suggest import suggested_panel
from nilometer.server.dashboards.time_range import TimeRange

_KINDS: Final = {
    PanelKind.LINE.value: "lines",
    PanelKind.BAR.value: "bars",
    PanelKind.STAT.value: "figures",
    PanelKind.TABLE.value: "table",
    PanelKind.HEAT.value: "heat map",
    PanelKind.MAP.value: "map of sensors",
}
_SOURCES: Final = {
    SourceKind.QUERY.value: "Query",
    SourceKind.STREAM.value: "Stream",
    SourceKind.SELECT.value: "SELECT",
}
_COMBINE: Final = {
    Combine.ALL.value: "as they are",
    Combine.AVG.value: "average",
    Combine.MIN.value: "least",
    Combine.MAX.value: "greatest",
    Combine.SUM.value: "sum",
    Combine.COUNT.value: "number of rows",
    Combine.LAST.value: "last",
}
_WIDTHS: Final = {3: "a quarter", 4: "a third", 6: "half", 8: "two thirds", 9: "three quarters"}
_FULL: Final = 12
_NONE: Final = ""
_PAUSE: Final = 0.7
"""Seconds without a change before the preview is updated."""
_EXAMPLE: Final = "SELECT _time, value FROM stream WHERE _time >= :start AND _time <= :end"


def open_panel_form(
    console: Console,
    before: Panel | None,
    at: TimeRange,
    done: Callable[[Panel], Awaitable[None]],
) -> None:
    """Ask for a panel; `before` is the one to change, `done` keeps the new one or says why not."""
    form = PanelForm(console, before, at, done)
    background_tasks.create(form.fill())


class PanelForm:
    """A dialog with a preview."""

    def __init__(
        self,
        console: Console,
        before: Panel | None,
        at: TimeRange,
        done: Callable[[Panel], Awaitable[None]],
    ) -> None:
        self._service = console.service
        self._visitor = console.visitor()
        self._before = before
        self._at = at
        self._done = done
        self._is_filling = False
        self._shown_for: tuple[SourceKind, str] | None = None
        """The source for which the fields are filled in: later answers about it change nothing."""
        self._names: dict[str, list[str]] = {}
        self._looking: asyncio.Task[Any] | None = None
        with ui.dialog() as self.dialog, ui.card().classes("nm-dialog nm-form-card nm-panel-form"):
            title = "New panel" if before is None else "Edit panel"
            ui.label(title).classes("nm-title").props("role=heading aria-level=2")
            with ui.element("div").classes("nm-fields"):
                self._draw_fields()
            self._place = ui.element("div").classes("nm-preview")
            self._problem = ui.label().classes("nm-bad nm-small").props("role=alert")
            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Cancel", color=None, on_click=self.dialog.close).props("flat no-caps")
                verb = "Add it" if before is None else "Change it"
                self._save = ui.button(verb, color=None, on_click=self._try)
                self._save.classes("nm-first").props("unelevated no-caps")
        self.dialog.on("hide", self.dialog.delete)
        self.dialog.open()

    async def fill(self) -> None:
        """Fill in what needs the database."""
        try:
            queries = [
                one.name for one in await self._service.queries.all() if not one.is_temporary
            ]
            streams = [one.declaration.name for one in await self._service.streams.declarations()]
        except NilometerError as error:
            self._problem.text = in_one_line(error)
            return
        self._names = {SourceKind.QUERY.value: queries, SourceKind.STREAM.value: streams}
        before = self._before
        if before is not None:
            self._show(before)
        elif not queries and streams and self._source.value == SourceKind.QUERY.value:
            self._source.value = SourceKind.STREAM.value  # unless somebody has chosen meanwhile
        self._offer_names()
        if before is not None:
            await self._read_columns(before)
        elif self._name.value:
            await self._name_chosen()

    def _draw_fields(self) -> None:
        self._source = ui.toggle(_SOURCES, value=SourceKind.QUERY.value).classes("nm-toggle")
        self._source.props(f'{TOGGLE} aria-label="Where its rows come from"')
        self._name = ui.select([], label="Name", with_input=True).classes("nm-wide")
        self._text = ui.textarea("SELECT over what is stored", placeholder=_EXAMPLE)
        self._text.props("rows=4 input-class=nm-mono")
        self._title = ui.input("Title").props("maxlength=200")
        self._kind = ui.select(_KINDS, value=PanelKind.LINE.value, label="Shown as")
        self._x = ui.select({_NONE: "time"}, value=_NONE, label="x")
        self._y = ui.select([], multiple=True, label="y: numbers").props("use-chips")
        self._series = ui.select({_NONE: "—"}, value=_NONE, label="One for each (series)")
        self._value = ui.select({_NONE: "—"}, value=_NONE, label="Colour by")
        self._combine = ui.select(_COMBINE, value=Combine.ALL.value, label="Values of one place")
        self._unit = ui.input("Unit", placeholder="°C").props("maxlength=40")
        self._width = ui.select({**_WIDTHS, _FULL: "full"}, value=6, label="Width")
        fields = (self._name, self._text, self._title, self._kind, self._x, self._y)
        more = (self._series, self._value, self._combine, self._unit, self._width)
        for one in (*fields, *more):
            one.props("outlined dense stack-label")
        self._source.on_value_change(self._turn_source)
        self._name.on_value_change(self._name_chosen)
        self._text.on("blur", lambda: self._read_columns(None))
        for field in (self._title, self._kind, self._x, self._y, *more):
            field.on_value_change(self._look_soon)
        self._kind.on_value_change(self._offer_fields)
        self._offer_fields()
        self._turn_source()

    # What is filled in

    def read(self) -> Panel:
        """The panel as filled in, or what is wrong with it."""
        kind = SourceKind(str(self._source.value))
        text = self._text.value if kind is SourceKind.SELECT else self._name.value
        shown = PanelKind(str(self._kind.value))
        title = str(self._title.value or "").strip()
        return Panel(
            title or str(self._name.value or "") or "Panel",
            shown,
            Source(kind, str(text or "")),
            self._x.value or None,
            tuple(self._y.value or ()),
            self._series.value or None,
            (self._value.value or None) if shown is PanelKind.MAP else None,
            Combine(str(self._combine.value)),
            str(self._unit.value or "").strip(),
            int(self._width.value or 6),
        )

    def _show(self, panel: Panel) -> None:
        """Fill in a panel; columns that are gone are shown all the same."""
        self._is_filling = True
        self._shown_for = (panel.source.kind, panel.source.text)
        self._source.value = panel.source.kind.value
        if panel.source.kind is SourceKind.SELECT:
            self._text.value = panel.source.text
        else:
            names = self._names[panel.source.kind.value]
            if panel.source.text not in names:
                names.append(panel.source.text)
            self._name.set_options(names, value=panel.source.text)
        self._title.value, self._kind.value = panel.title, panel.kind.value
        self._combine.value, self._unit.value = panel.combine.value, panel.unit
        if panel.width not in self._width.options:
            self._width.set_options({**_WIDTHS, _FULL: "full", panel.width: f"{panel.width}/12"})
        self._width.value = panel.width
        self._offer_columns(None, panel)
        self._is_filling = False

    def _offer_columns(self, source: PanelSource | None, chosen: Panel | None) -> None:
        """Offer the columns of a source; chosen ones stay."""
        names = [] if source is None else [one.name for one in source.with_changes().columns]
        numbers = names
        if source is not None:
            numbers = [one.name for one in source.with_changes().columns if one.is_number]
        if chosen is None:
            chosen = self._current_panel()
        y = list(chosen.y) if chosen else []
        every = {one: one for one in [*names, *y]}
        for field, none, own in (
            (self._x, "time", chosen.x if chosen else None),
            (self._series, "—", chosen.series if chosen else None),
            (self._value, "—", chosen.value if chosen else None),
        ):
            options = {_NONE: none, **every} | ({own: own} if own else {})
            field.set_options(options, value=own or _NONE)
        is_table = self._kind.value == PanelKind.TABLE.value
        offered = names if is_table else numbers
        self._y.set_options(list(dict.fromkeys([*offered, *y])), value=y)

    def _current_panel(self) -> Panel | None:
        try:
            return self.read()
        except NilometerError:
            return None

    def _offer_fields(self) -> None:
        """Show only the fields that this kind of panel uses."""
        kind = PanelKind(str(self._kind.value))
        is_table, is_map = kind is PanelKind.TABLE, kind is PanelKind.MAP
        self._y.props(f'label="{"columns (none: all)" if is_table else "y: numbers"}"')
        self._series.set_visibility(not is_table)
        self._value.set_visibility(is_map)
        self._combine.set_visibility(not is_table and not is_map)
        self._unit.set_visibility(not is_table)

    def _turn_source(self) -> None:
        is_select = self._source.value == SourceKind.SELECT.value
        self._name.set_visibility(not is_select)
        self._text.set_visibility(is_select)
        if not self._is_filling:
            self._offer_names()

    def _offer_names(self) -> None:
        names = self._names.get(str(self._source.value), [])
        value = self._name.value if self._name.value in names else next(iter(names), None)
        self._name.set_options(names, value=value)

    # What needs the database

    async def _name_chosen(self) -> None:
        """Another query or stream was chosen: suggest how to show it."""
        kind = SourceKind(str(self._source.value))
        wanted = (kind, str(self._name.value or ""))
        if kind is SourceKind.SELECT or not self._name.value or wanted == self._shown_for:
            return
        self._shown_for = wanted
        try:
            source = await self._service.stored_source(str(self._name.value))
        except NilometerError as error:
            self._problem.text = in_one_line(error)
            return
        self._show(suggested_panel(source, kind))
        await self._read_columns(self._current_panel())

    async def _read_columns(self, chosen: Panel | None) -> None:
        """Offer the columns of the source that is filled in."""
        kind = SourceKind(str(self._source.value))
        text = self._text.value if kind is SourceKind.SELECT else self._name.value
        if not str(text or "").strip():
            return
        try:
            at = self._at.at(now_micros())
            source = await open_source(
                self._service, Source(kind, str(text)), at, self._visitor.asker
            )
        except NilometerError as error:
            self._problem.text = in_one_line(error)
            return
        self._problem.text = ""
        self._is_filling = True
        self._offer_columns(source, chosen)
        self._is_filling = False
        self._look_soon()

    def _look_soon(self) -> None:
        if self._is_filling:
            return
        if self._looking is not None:
            self._looking.cancel()
        self._looking = background_tasks.create(self._look())

    async def _look(self) -> None:
        """Preview the panel."""
        await asyncio.sleep(_PAUSE)
        if self.dialog.is_deleted:
            return
        try:
            panel = self.read()
        except NilometerError as error:
            self._problem.text = in_one_line(error)
            return
        self._problem.text = ""
        self._place.clear()
        with self._place:
            body = PanelBody(panel.kind, panel.title, None)
        try:
            at = self._at.at(now_micros())
            await body.show(await read_panel(self._service, panel, at, self._visitor.asker))
        except NilometerError as error:
            body.fail(error)

    async def _try(self) -> None:
        self._save.props("loading")
        try:
            await self._done(self.read())
        except NilometerError as error:
            self._problem.text = in_one_line(error)
        else:
            self.dialog.close()
        finally:
            self._save.props(remove="loading")
