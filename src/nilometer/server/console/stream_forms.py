"""Forms for new streams and new sensors, with a trial reading before anything is created."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from nilometer.database.try_sensor import TrialResult
from nilometer.errors import NilometerError, in_one_line
from nilometer.kernels.expression_types import type_name
from nilometer.model.names import count
from nilometer.model.secrets import shown_text
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.find_types import known_types
from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, Shape, shape, shortened, table
from nilometer.server.console.figures import few_digits
from nilometer.server.console.form_dialog import FormDialog
from nilometer.server.console.form_statements import (
    Column,
    StreamForm,
    create_stream,
    insert_sensors,
    option_lines,
)
from nilometer.server.console.live_elements import TOGGLE

TRY_SECONDS: Final = 5.0
TRY_ROWS: Final = 5
_ONE: Final = "One sensor"
_MANY: Final = "Many sensors (a table)"
_ADDRESSES: Final = {
    "http": "http://10.0.0.7/reading",
    "mqtt": "mqtt://broker/plant/+/temperature",
    "kafka": "kafka://broker:9092/plant",
    "tcp": "tcp://10.0.0.7:5000",
    "file": "recordings/run1.csv",
}
"""What an address looks like, by type."""

Done = Callable[[str], Awaitable[None]]


class TrialButton:
    """Reads what the statement of a form would declare, and shows what comes."""

    def __init__(self, console: Console, form: FormDialog) -> None:
        self._service = console.service
        self._visitor = console.visitor()
        self._form = form
        with form.extra:
            self._button = ui.button("Try a reading", icon="sensors", color=None, on_click=self._go)
            self._button.props("flat no-caps").classes("nm-second")
            self._outcome = Drawing(shape("div")).classes("nm-scroll")

    async def _go(self) -> None:
        if self._form.text is None:
            self._form.say("fill in the fields first")
            return
        self._button.props("loading")
        self._outcome.show(
            shape("p", f"reading for {TRY_SECONDS:g} s …", class_="nm-small nm-soft")
        )
        try:
            asker = self._visitor.asker
            tried = await self._service.streams.try_statements(
                self._form.text, asker, TRY_SECONDS, TRY_ROWS
            )
        except NilometerError as error:
            self._outcome.show(
                shape("p", in_one_line(error), class_="nm-small nm-bad", role="alert")
            )
        else:
            self._outcome.show(tried_reading(tried))
        finally:
            self._button.props(remove="loading")


def tried_reading(tried: TrialResult) -> Shape:
    """What a sensor sent, or why nothing came that can be stored."""
    parts = []
    if tried.readings:
        names = list(tried.readings[0])
        rows = [
            [shortened(few_digits(str(one[name])), 60) for name in names] for one in tried.readings
        ]
        parts.append(shape("p", f"{count(tried.came, 'reading')} came:", class_="nm-small nm-good"))
        parts.append(table(names, rows))
    if tried.letters:
        first = tried.letters[0]
        text = f"{count(tried.refused, 'reading')} could not be stored: {first['reason']}: "
        sent = shortened(str(first["payload"]), 200)
        parts.append(shape("p", shown_text(text) + sent, class_="nm-small nm-bad", role="alert"))
    if tried.last_error is not None:
        parts.append(
            shape("p", shown_text(tried.last_error), class_="nm-small nm-bad", role="alert")
        )
    if not parts:
        text = f"Nothing arrived within {TRY_SECONDS:g} s; it may be slow, or silent."
        parts.append(shape("p", text, class_="nm-small nm-warn", role="status"))
    return shape("div", *parts)


def open_stream_form(console: Console, done: Done) -> None:
    """Ask for a new stream, or a new table of sensors."""
    form = FormDialog(console, "Add a stream", "Create it", lambda: create_stream(read()), done)
    with form.fields():
        kind = ui.toggle([_ONE, _MANY], value=_ONE).props(TOGGLE)
        kind.classes("nm-toggle")
        name = ui.input("Name", placeholder="Farm")
        source = ui.select([*known_types()], value="http", label="Type")
        address = ui.input("Address", placeholder=_ADDRESSES["http"])
        columns = ui.textarea("Columns of a reading, one on each line", value="temperature DOUBLE")
        static = ui.textarea("Columns that distinguish sensors", value="place STRING")
        sensors = ui.textarea("Sensors, one on each line: their values, then the address")
        sensors.props('placeholder="barn, http://10.0.0.7/reading"')
        with ui.expansion("More", icon="tune").classes("nm-wide"):
            time = ui.input("Column with the time", placeholder="empty: when it arrives")
            lateness = ui.input("Lateness", placeholder="5 SECONDS")
            idle = ui.input("Idle", placeholder="30 SECONDS")
            history = ui.input("History", placeholder="30 DAYS")
            options = ui.textarea("Further options, one on each line: name = value")
        texts = (name, source, address, columns, static, sensors, time, lateness, idle, history)
        for one in (*texts, options):
            one.props("dense outlined stack-label")
        for one in (columns, static, sensors, options):
            one.props("autogrow")
        form.watch(kind, *texts, options)

        def read() -> StreamForm:
            is_table = kind.value == _MANY
            type_options = {} if is_table else {"address": address.value or ""}
            return StreamForm(
                name.value or "",
                columns.value or "",
                str(source.value),
                type_options | option_lines(options.value or ""),
                time=time.value or "",
                lateness=lateness.value or "",
                idle=idle.value or "",
                history=history.value or "",
                static=static.value or "" if is_table else None,
                sensors=sensors.value or "",
            )

        def offer() -> None:
            is_table = kind.value == _MANY
            address.visible = not is_table and source.value != "synthetic"
            static.visible = sensors.visible = is_table
            address.props(f'placeholder="{_ADDRESSES.get(str(source.value), "")}"')

        kind.on_value_change(offer)
        source.on_value_change(offer)
        offer()
    TrialButton(console, form)
    form.open()


def open_sensors_form(console: Console, declared: Declaration, done: Done) -> None:
    """Ask for new sensors of a table."""
    assert declared.static is not None
    columns = [Column(one.name, type_name(one.type)) for one in declared.static]
    wanted = ", ".join([*(one.name for one in columns), "address"])

    def write() -> str:
        return insert_sensors(declared.name, columns, declared.place, lines.value or "")

    form = FormDialog(console, f"Add sensors to {declared.name}", "Add them", write, done)
    with form.fields():
        lines = ui.textarea(f"One sensor on each line: {wanted}").classes("nm-wide")
        lines.props("dense outlined stack-label autogrow")
        form.watch(lines)
    TrialButton(console, form)
    form.open()
