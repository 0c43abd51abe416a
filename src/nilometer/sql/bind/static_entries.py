"""Sensor tables in FROM of which only static columns are used: these are plain tables.

A sensor table is a stream with a row per reading. Where a query uses neither its stream column
nor its time, and puts no window on it, it is the table with a row per sensor, which the catalog
answers: no sensor is contacted. Only the SELECT in whose FROM it stands decides this.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from nilometer.sql.catalog import Relation
from nilometer.sql.expressions.scalars import RESULT_TIME
from nilometer.sql.parse.dialect import PairWindowNode


def needs_readings(tree: exp.Select, entry: exp.Table, relation: Relation) -> bool:
    """Whether a query uses more of a sensor table than its static columns.

    A bare _time is not counted: see `names_bare_time`.
    """
    assert relation.sensors is not None
    alias = entry.args.get("alias")
    if _has_window(tree, entry) or (alias is not None and alias.args.get("columns")):
        return True
    name, own = entry.alias_or_name.lower(), relation.sensors.column.lower()
    if any(_is_of(star, name) for star in _stars(tree)):
        return True
    names = list(_names(tree, name))
    qualified = [words[1] for words in names if words[0] == name and len(words) > 1]
    if own in qualified or RESULT_TIME.column in qualified:
        return True
    return any(words[0] == own for words in names if words[0] != name)


def names_bare_time(tree: exp.Select) -> bool:
    """Whether a query uses _time without naming a stream."""
    return any(words == [RESULT_TIME.column] for words in _names(tree, ""))


def _has_window(tree: exp.Select, entry: exp.Table) -> bool:
    alias, clause = entry.args.get("alias"), tree.args.get("windows")
    if alias is not None and alias.args.get("stream_window") is not None:
        return True
    windows = clause.find_all(PairWindowNode) if clause is not None else ()
    return any(_is_between(window, entry.alias_or_name) for window in windows)


def _is_between(window: PairWindowNode, name: str) -> bool:
    """Whether a window is on a stream of that name; one without names is on all streams."""
    streams = [one.name.lower() for one in window.expressions]
    return not streams or name.lower() in streams


def _stars(tree: exp.Select) -> Iterator[exp.Star]:
    """The stars of the list itself, * and A.*, also inside struct(A.*)."""
    if isinstance(tree.parent, exp.Exists):
        return
    for item in tree.expressions:
        for star in item.find_all(exp.Star):
            if not isinstance(star.parent, exp.Count):
                yield star


def _is_of(star: exp.Star, name: str) -> bool:
    """Whether a star includes columns of an entry."""
    table = star.parent.args.get("table") if isinstance(star.parent, exp.Column) else None
    return table is None or table.name.lower() == name


def _names(tree: exp.Select, name: str) -> Iterator[list[str]]:
    """The dotted names in a query, in lower case, except in subqueries of FROM.

    Names in EXISTS and IN count, unless their own FROM has an entry of that name.
    """
    hidden: set[int] = set()
    for node in tree.walk(prune=lambda node: _hides(node, tree, name)):
        if _hides(node, tree, name) or id(node) in hidden:
            continue
        if isinstance(node, exp.Column | exp.Dot):
            hidden.update(id(inner) for inner in node.walk() if inner is not node)
            yield [part.name.lower() for part in node.parts]


def _hides(node: exp.Expr, tree: exp.Select, name: str) -> bool:
    if isinstance(node, exp.Select) and node is not tree:
        first = node.args.get("from_")
        entries = [] if first is None else [first.this]
        entries += [join.this for join in node.args.get("joins") or ()]
        return any(entry.alias_or_name.lower() == name for entry in entries)
    in_from = isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join)
    return isinstance(node, exp.With) or in_from
