"""CREATE ALERT."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nilometer.errors import Place
from nilometer.sql.ddl.nodes import CreateAlert
from nilometer.sql.ddl.read_delivery import read_deliver_to
from nilometer.sql.ddl.read_options import read_placed_options
from nilometer.sql.ddl.statement_reader import StatementReader

_HINT: Final = (
    "write CREATE ALERT a ON q WHEN v > 50 FOR '10 seconds' CLEAR WHEN v < 45 PER (room) "
    "NO DATA FOR '1 minute' DELIVER TO webhook WITH (…); everything after WHEN v > 50 is "
    "optional, and so is WHEN itself: CREATE ALERT a ON q NO DATA FOR '1 minute'"
)
_WITHOUT_WHEN: Final = ("NO", "PER", "WITH", "DELIVER")
"""The first words of clauses that need no condition."""
_OPTIONS: Final = "write WITH (history = '30 days', groups = 1000)"


def read_alert(reader: StatementReader) -> CreateAlert:
    """[IF NOT EXISTS] name ON source [WHEN condition], and clauses in any order, each once."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name, place = reader.name("the name of the alert", _HINT)
    reader.expect("ON", "ON and a stream, sensor table or query", _HINT)
    source, source_place = reader.name("the name of a stream, sensor table or query", _HINT)
    if reader.parameters.values:
        reader.refuse("an alert cannot have parameters", hint="write the values in its text")
    alert = CreateAlert(name, source, None, if_not_exists, place, source_place)
    if reader.at_end or not any(map(reader.at, _WITHOUT_WHEN)):
        reader.expect("WHEN", "WHEN and a condition, or NO DATA FOR and a time", _HINT)
        text, at = _condition(reader)
        alert = replace(alert, condition=text, condition_place=at)
    seen = set[str]()
    while not reader.at_end:
        word = reader.current.text.upper()
        if word in seen:
            reader.refuse(f"{word} is given twice", hint=_HINT)
        seen.add(word)
        alert = _clause(reader, alert)
    if alert.condition is None and alert.no_data is None:
        reader.refuse("expected NO DATA FOR and a time, as there is no WHEN", hint=_HINT)
    return alert


def _clause(reader: StatementReader, alert: CreateAlert) -> CreateAlert:
    if alert.condition is None and (reader.at("FOR") or reader.at("CLEAR")):
        word = reader.current.text.upper()
        reader.refuse(f"{word} needs a condition: WHEN comes before it", hint=_HINT)
    if reader.take("FOR"):
        return replace(alert, hold=reader.length("FOR", 0, _HINT))
    if reader.take("CLEAR", "WHEN"):
        text, place = _condition(reader)
        return replace(alert, clear=text, clear_place=place)
    if reader.take("PER"):
        return replace(alert, per=_columns(reader))
    if reader.take("NO", "DATA", "FOR"):
        return replace(alert, no_data=reader.length("NO DATA FOR", 1, _HINT))
    if reader.take("WITH"):
        return replace(alert, options=read_placed_options(reader, "WITH", _OPTIONS))
    if reader.take("DELIVER"):
        return replace(alert, deliver=read_deliver_to(reader, _HINT))
    return reader.refuse("expected the end of the statement, or one of its clauses", hint=_HINT)


def _condition(reader: StatementReader) -> tuple[str, Place]:
    """The text and the place of a condition that must come next."""
    first = reader.current
    reader.value("a condition", _HINT)
    place = Place(reader.sql, first.start, reader.last.end + 1)
    return reader.sql[place.start : place.end], place


def _columns(reader: StatementReader) -> tuple[tuple[str, Place], ...]:
    reader.expect("(", "( and columns after PER", _HINT)
    columns = [reader.name("the name of a column", _HINT)]
    while reader.take(","):
        columns.append(reader.name("the name of a column", _HINT))
    reader.expect(")", ", or ) after the column", _HINT)
    return tuple(columns)
