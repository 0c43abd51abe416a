"""Rows as a small HTML table for notebooks: bounded, and with all text escaped."""

from __future__ import annotations

from html import escape
from typing import Any, Final

import pyarrow as pa

_ROWS: Final = 20
_COLUMNS: Final = 30
_LETTERS: Final = 200


def html_table(table: pa.Table, message: str | None = None, *, is_cut: bool = False) -> str:
    """The first rows of a table, and how many more there are.

    >>> html_table(pa.table({"n": [1]})).partition("<tbody>")[2]
    '<tr><td>1</td></tr></tbody></table><p>1 row</p>'
    """
    shown = table.slice(0, _ROWS).select(list(range(min(_COLUMNS, table.num_columns))))
    columns = [[_cell(one.as_py()) for one in column] for column in shown.columns]
    head = "".join(f"<th>{html_text(name)}</th>" for name in shown.column_names)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    markup = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    notes = [_counted(table.num_rows, "row")]
    if table.num_rows > _ROWS:
        notes.append(f"{table.num_rows - _ROWS} of them not shown")
    if table.num_columns > _COLUMNS:
        notes.append(f"{_counted(table.num_columns - _COLUMNS, 'column')} not shown")
    if is_cut:
        notes.append("the server has more")
    sentence = "" if not message else f"<p>{html_text(message)}</p>"
    return f"{sentence}{markup}<p>{', '.join(notes)}</p>" if table.num_columns else sentence


def _cell(value: Any) -> str:
    return f"<td>{'NULL' if value is None else html_text(str(value))}</td>"


def html_text(text: str) -> str:
    """Text with markup escaped, cut if it is long."""
    return escape(text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
