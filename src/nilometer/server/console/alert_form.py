"""Forms of alerts: a new one, and silencing one for a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from nilometer.errors import NilometerError
from nilometer.server.console.access import Console
from nilometer.server.console.alert_statements import AlertForm, create_alert, silence_alert
from nilometer.server.console.form_dialog import FormDialog
from nilometer.server.console.form_statements import option_lines
from nilometer.server.scopes import Scope

Done = Callable[[str], Awaitable[None]]

_FIELDS: Final[dict[str, dict[str, str]]] = {
    "webhook": {"url": "https://example.org/in", "secret": "what requests are signed with"},
    "mqtt": {"url": "mqtt://broker", "topic": "plant/alerts"},
}
"""The fields by unit."""
_NOWHERE: Final = "nowhere: only shown here"
_LENGTHS: Final = ("15 minutes", "1 hour", "8 hours", "1 day", "7 days")


async def alert_sources(console: Console) -> dict[str, list[str]]:
    """The columns of everything that an alert can read, by name."""
    service, columns = console.service, {}
    queries = [one.name for one in await service.queries.all() if not one.is_temporary]
    for name in [*queries, *(one.declaration.name for one in await service.streams.declarations())]:
        try:
            source = await service.stored_source(name)
        except NilometerError:  # it has no rows yet
            continue
        hidden = ("_time", "_diff") if source.changes else ()
        columns[source.name] = [one for one in source.schema.names if one not in hidden]
    return columns


def open_alert_form(console: Console, sources: dict[str, list[str]], done: Done) -> None:
    """Open the form of a new alert."""
    may_deliver = console.visitor().may(Scope.ADMIN)

    def write() -> str:
        wanted = _FIELDS.get(str(unit.value), {})
        unit_options = {one: str(fields[one].value or "") for one in wanted}
        if wanted:
            unit_options |= option_lines(options.value or "")
        return create_alert(
            AlertForm(
                name.value or "",
                str(source.value or ""),
                condition.value or "",
                hold.value or "",
                clear.value or "",
                tuple(per.value or ()),
                no_data.value or "",
                str(unit.value) if wanted else "",
                unit_options,
            )
        )

    form = FormDialog(console, "New alert", "Create it", write, done)
    with form.fields():
        name = ui.input("Name", placeholder="hot")
        first = next(iter(sources))
        source = ui.select(list(sources), value=first, label="On", with_input=len(sources) > 9)
        columns = ui.label().classes("nm-small nm-soft")
        condition = ui.input("Fires when", placeholder="temperature > 50; empty: no data only")
        hold = ui.input("For at least", placeholder="at once, or 10 seconds")
        clear = ui.input("Clears when", placeholder="that no longer holds, or temperature < 45")
        per = ui.select(sources[first], label="For each (may be empty)", multiple=True)
        no_data = ui.input("No data after", placeholder="never, or 1 minute")
        unit = ui.select(
            [_NOWHERE, *_FIELDS] if may_deliver else [_NOWHERE], value=_NOWHERE, label="Tell"
        )
        names = dict.fromkeys(one for wanted in _FIELDS.values() for one in wanted)
        fields = {one: ui.input("URL" if one == "url" else one.capitalize()) for one in names}
        options = ui.textarea("Further options, one on each line: name = value")
        own = (name, source, condition, hold, clear, per, no_data, unit, *fields.values(), options)
        for one in own:
            one.props("dense outlined stack-label")
        per.props("use-chips")
        options.props("autogrow")
        form.watch(*own)

        def offer() -> None:
            wanted = _FIELDS.get(str(unit.value), {})
            for key, field in fields.items():
                field.visible = key in wanted
                field.props(f'placeholder="{wanted.get(key, "")}"')
            options.visible = bool(wanted)

        def choose() -> None:
            known = sources.get(str(source.value), [])
            columns.text = f"Columns: {', '.join(known)}"
            per.set_options(known, value=[])

        unit.on_value_change(offer)
        source.on_value_change(choose)
        offer()
        choose()
    form.open()


def open_silence_form(console: Console, alert: str, done: Done) -> None:
    """Ask how long an alert must be silenced."""

    def write() -> str:
        return silence_alert(alert, str(length.value or ""))

    form = FormDialog(console, f"Silence {alert}", "Silence it", write, done)
    with form.fields():
        ui.label("Events are recorded meanwhile, but not delivered.").classes("nm-small nm-soft")
        length = ui.select(list(_LENGTHS), value=_LENGTHS[1], label="For", with_input=True)
        length.props("dense outlined stack-label new-value-mode=add-unique")
        form.watch(length)
    form.open()
