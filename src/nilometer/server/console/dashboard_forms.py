"""Small forms of dashboards: create, retitle, import from a file, add a panel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from nicegui import events, ui

from nilometer.errors import NilometerError, in_one_line
from nilometer.model.dashboard import Dashboard, Panel, SourceKind, name_for
from nilometer.server.console.access import Console
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.dashboards.suggest import suggested_panel, suggested_panels

_NEW: Final = ""
_MOST_BYTES: Final = 1 << 20

Do = Callable[[], Awaitable[None]]


def dashboard_address(name: str) -> str:
    """The address of a dashboard."""
    return f"/console/dashboards/{quote(name)}"


class SmallForm:
    """A dialog that closes once its action succeeds, and otherwise shows the error."""

    def __init__(self, title: str, verb: str, do: Do) -> None:
        self._do = do
        with ui.dialog() as self.dialog, ui.card().classes("nm-dialog nm-form-card"):
            ui.label(title).classes("nm-title").props("role=heading aria-level=2")
            self._fields = ui.element("div").classes("nm-fields")
            self._problem = ui.label().classes("nm-bad nm-small").props("role=alert")
            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Cancel", color=None, on_click=self.dialog.close).props("flat no-caps")
                self._button = ui.button(verb, color=None, on_click=self.attempt)
                self._button.classes("nm-first").props("unelevated no-caps")
        self.dialog.on("hide", self.dialog.delete)

    @contextmanager
    def fields(self) -> Iterator[None]:
        with self._fields:
            yield

    async def attempt(self) -> None:
        """Perform the action, or show why it failed."""
        self._button.props("loading")
        try:
            await self._do()
        except NilometerError as error:
            self._problem.text = in_one_line(error)
        else:
            self.dialog.close()
        finally:
            self._button.props(remove="loading")


def open_new_form(console: Console, *, with_panels: bool = False) -> None:
    """Ask for a title and a name, and go to the new dashboard."""

    async def create() -> None:
        panels = await suggested_panels(console.service) if with_panels else []
        dashboard = await _create(console, str(title.value or ""), str(name.value or ""), panels)
        ui.navigate.to(dashboard_address(dashboard.name))

    form = SmallForm("New dashboard", "Create it", create)
    with form.fields():
        title, name = _title_and_name()
    form.dialog.open()


def open_title_form(before: str, change: Callable[[str], Awaitable[None]]) -> None:
    """Ask for a new title."""

    async def do() -> None:
        await change(str(title.value or ""))

    form = SmallForm("Title of the dashboard", "Change it", do)
    with form.fields():
        title = ui.input("Title", value=before).props("outlined dense autofocus maxlength=200")
        title.classes("nm-wide").on("keydown.enter", form.attempt)
    form.dialog.open()


def open_import_form(console: Console) -> None:
    """Ask for a file, or for its content; an existing dashboard is not replaced."""

    async def create() -> None:
        dashboard = Dashboard.from_text(
            str(text.value or ""), str(name.value or "").strip() or None
        )
        asker = console.visitor().asker
        stored = await console.service.dashboards.put(dashboard, asker, expected=0)
        ui.navigate.to(dashboard_address(stored.name))

    async def take(event: events.UploadEventArguments) -> None:
        text.value = (await event.file.read()).decode("utf-8", "replace")

    form = SmallForm("Import a dashboard", "Import it", create)
    with form.fields():
        upload = ui.upload(on_upload=take, auto_upload=True, max_file_size=_MOST_BYTES)
        upload.props('accept=".json,application/json" label="A file that was exported" flat')
        upload.classes("nm-wide nm-upload")
        text = ui.textarea("Or its text (JSON)").props("outlined dense")
        name = ui.input("Another name, if that is taken").props("outlined dense maxlength=60")
    form.dialog.open()


async def open_add_form(console: Console, name: str, kind: SourceKind) -> None:
    """Ask for the dashboard that will show a query or a stream."""
    try:
        panel = suggested_panel(await console.service.stored_source(name), kind)
        titles = {one.name: one.title for one in await console.service.dashboards.all()}
    except NilometerError as error:
        tell_problem(error)
        return

    async def add() -> None:
        made = await _add(console, panel, str(where.value), str(title.value or ""), named.value)
        tell_done(f"{name} is on the dashboard {made.title}.")
        ui.navigate.to(dashboard_address(made.name))

    form = SmallForm(f"Add {name} to a dashboard", "Add it", add)
    with form.fields():
        options = {**titles, _NEW: "A new dashboard"}
        where = ui.select(options, value=next(iter(options)), label="Dashboard")
        where.props("outlined dense stack-label").classes("nm-wide")
        title, named = _title_and_name()

        def show() -> None:
            for one in (title, named):
                one.set_visibility(where.value == _NEW)

        where.on_value_change(show)
        show()
    form.dialog.open()


def add_to_dashboard(console: Console, name: str, kind: SourceKind) -> ui.button:
    """A button in the current place."""

    async def ask() -> None:
        await open_add_form(console, name, kind)

    button = ui.button("Add to dashboard", icon="dashboard_customize", on_click=ask, color=None)
    return button.props("no-caps flat dense").classes("nm-second nm-action")


async def _add(console: Console, panel: Panel, where: str, title: str, name: Any) -> Dashboard:
    if where == _NEW:
        return await _create(console, title, str(name or ""), [panel])
    before = await console.service.dashboards.find(where)
    wanted = Dashboard(before.name, before.title, (*before.panels, panel))
    asker = console.visitor().asker
    return await console.service.dashboards.put(wanted, asker, expected=before.version)


async def _create(console: Console, title: str, name: str, panels: list[Panel]) -> Dashboard:
    dashboard = Dashboard(name.strip() or name_for(title), title.strip(), tuple(panels))
    return await console.service.dashboards.put(dashboard, console.visitor().asker, expected=0)


def _title_and_name() -> tuple[ui.input, ui.input]:
    title = ui.input("Title", placeholder="Cooling plant").props("outlined dense maxlength=200")
    name = ui.input("Name in its address").props("outlined dense maxlength=60")
    title.on_value_change(lambda: name.set_value(name_for(str(title.value or ""))))
    return title, name
