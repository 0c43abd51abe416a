"""Updates panels of dashboards when what they show is renamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nilometer.model.dashboard import MOST_TEXT, Panel, SourceKind
from nilometer.sql.expressions.scalars import quote_name
from nilometer.sql.parse.places import place_of

_DIALECT: Final = "spark"


def renamed_panel(panel: Panel, name: str, to: str) -> Panel:
    """A panel that shows the renamed source; unchanged if it shows something else."""
    source = panel.source
    if source.kind is SourceKind.SELECT:
        text = renamed_in(source.text, name, to)
    else:
        text = to if source.text.lower() == name.lower() else source.text
    if text == source.text or len(text) > MOST_TEXT:
        return panel
    return replace(panel, source=replace(source, text=text))


def renamed_in(sql: str, name: str, to: str) -> str:
    """A SELECT that reads a source by its new name; columns may keep the old one as qualifier.

    >>> renamed_in("SELECT a.v FROM a", "a", "b")
    'SELECT a.v FROM `b` AS `a`'
    """
    try:
        tree = sqlglot.parse_one(sql, read=_DIALECT)
    except (SqlglotError, RecursionError):
        return sql
    own = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    if name.lower() in own:  # then the meaning is ambiguous
        return sql
    changes = []
    for entry in tree.find_all(exp.Table):
        if entry.name.lower() != name.lower() or not isinstance(entry.this, exp.Identifier):
            continue
        place = place_of(entry.this, sql)
        needs_alias = not entry.alias and entry.args.get("version") is None
        alias = f" AS {quote_name(entry.name)}" if needs_alias else ""
        changes.append((place.start, place.end, f"{quote_name(to)}{alias}"))
    for start, end, text in sorted(changes, reverse=True):
        sql = f"{sql[:start]}{text}{sql[end:]}"
    return sql
