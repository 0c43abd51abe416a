"""now(), current_timestamp and current_date: the instant at which a question is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlglot import exp

from nilometer.sql.catalog import Catalog
from nilometer.sql.parse.clock_calls import is_clock_call
from nilometer.sql.parse.find_names import find
from nilometer.sql.parse.parameters import constant_of
from nilometer.sql.parse.query_text import Statement


def put_instant(statement: Statement, catalog: Catalog, now: datetime) -> Statement:
    """The statement with one instant for all its calls, where all data that it reads are there.

    Over a stream that goes on there is no such instant: the calls stay as they are.
    """
    if not any(map(is_clock_call, statement.tree.walk())) or not has_ended(statement, catalog):
        return statement
    tree = statement.tree.copy()
    for node in list(tree.walk()):
        if not is_clock_call(node):
            continue
        if not isinstance(node, exp.CurrentDate):
            value = constant_of(now.astimezone(UTC))
        elif catalog.zone:
            value = constant_of(now.astimezone(ZoneInfo(catalog.zone)).date())
        else:
            continue
        for part in value.walk():
            part.meta.update(node.meta)
        node.replace(value)
    return replace(statement, tree=tree)


def has_ended(statement: Statement, catalog: Catalog) -> bool:
    """Whether no more rows can arrive in what a statement names."""
    relations = list(catalog.relations.values())
    own = {one.alias.lower() for one in statement.tree.find_all(exp.CTE)}
    for table in statement.tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.name.lower() in own:
            continue
        relation = find(table.this, relations)
        if relation is None or not relation.clock.ended:
            return False
    return True
