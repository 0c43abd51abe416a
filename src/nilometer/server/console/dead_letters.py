"""A dialog with readings that could not be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from nicegui import ui

from nilometer.server.console.drawing import Drawing, Shape, shape, shortened, table
from nilometer.server.console.glossary import TERMS

_MOST: Final = 100


def show_letters(letters: Sequence[Mapping[str, object]]) -> None:
    """Open a dialog with these dead letters."""
    with ui.dialog() as dialog, ui.card().classes("nm-dialog nm-letters"):
        with ui.element("div").classes("nm-row nm-dialog-head"):
            ui.label("Dead letters").classes("nm-title").props("role=heading aria-level=2")
            ui.element("div").classes("nm-grow")
            close = ui.button(icon="close", on_click=dialog.close, color=None)
            close.props('flat round dense aria-label="Close"')
        ui.label(f"{TERMS['dead letter']} Newest first.").classes("nm-soft")
        Drawing(letters_as_table(letters)).classes("nm-scroll nm-letters-list")
    dialog.on("hide", dialog.delete)
    dialog.open()


def letters_as_table(letters: Sequence[Mapping[str, object]]) -> Shape:
    """Dead letters as text, newest first; on a narrow page each is a card."""
    if not letters:
        return shape("p", "There are none.", class_="nm-empty")
    names = [_heading(name, value) for name, value in letters[0].items()]
    rows = ([_cell(value) for value in one.values()] for one in newest_first(letters)[:_MOST])
    return table(names, rows)


def newest_first(letters: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Dead letters of any streams, newest first."""

    def when(one: Mapping[str, object]) -> float:
        time = next((value for value in one.values() if isinstance(value, datetime)), None)
        return 0.0 if time is None else time.timestamp()

    return sorted(letters, key=when)[::-1]


def _heading(name: str, value: object) -> str:
    words = name.replace("_", " ")
    return f"{words} (UTC)" if isinstance(value, datetime) else words


def _cell(value: object) -> Shape:
    text = f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
    return shape("pre", shortened("—" if value is None else text, 500), class_="nm-pre")
