"""WINDOW w AS (…): replace the names of OVER windows by their definitions; read frames once."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.model.names import nearest
from nilometer.sql.expressions.growth import copy_of
from nilometer.sql.parse.dialect import NAMED_WINDOWS
from nilometer.sql.parse.places import place_of

_PARTS: Final = ("partition_by", "order", "spec")
_SIDES: Final = ("start_side", "end_side")
_HINT: Final = "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"


def put_named_windows(tree: exp.Query, sql: str) -> exp.Query:
    """The query with every window written out where it is used."""
    if tree.find(exp.Window) is None:
        return tree
    tree = tree.copy()
    for other in tree.find_all(exp.Subquery, exp.SetOperation):
        for one in other.args.get(NAMED_WINDOWS) or ():
            raise SqlError(
                "WINDOW only names windows of its own query",
                place=place_of(one, sql),
                hint="move it inside the parentheses",
            )
    for spec in tree.find_all(exp.WindowSpec):
        _read_frame(spec, sql)
    for select in list(tree.find_all(exp.Select)):
        _put_windows(select, sql)
    for nulls in list(tree.find_all(exp.RespectNulls)):
        if isinstance(nulls.parent, exp.Window):  # which is what is done anyway
            nulls.replace(nulls.this)
    return tree


def _read_frame(spec: exp.WindowSpec, sql: str) -> None:
    """Put its words in upper case, and refuse invalid frames."""
    for key in ("kind", *_SIDES):
        if isinstance(word := spec.args.get(key), str):
            spec.set(key, word.upper())
    window = spec.find_ancestor(exp.Window)
    place = place_of(spec if window is None else window, sql)
    if spec.args.get("exclude"):
        raise SqlError("EXCLUDE is not supported", place=place, hint="leave it out")
    if spec.args.get("kind") not in ("ROWS", "RANGE"):
        raise SqlError(
            "a frame must use ROWS or RANGE", place=place, detail="GROUPS is not supported"
        )
    backwards = (("start", "FOLLOWING"), ("end", "PRECEDING"))
    for name, side in backwards:
        if spec.args.get(name) == "UNBOUNDED" and spec.args.get(f"{name}_side") == side:
            raise SqlError("a frame must begin before it ends", place=place, hint=_HINT)


def _put_windows(select: exp.Select, sql: str) -> None:
    """Put the WINDOW definition where OVER names it; a window may extend an earlier one."""
    known: dict[str, exp.Window] = {}
    for one in select.args.pop(NAMED_WINDOWS, None) or ():
        _put(one, known, sql)
        if one.name.lower() in known:
            raise SqlError(f"there are two windows {one.name}", place=place_of(one.this, sql))
        known[one.name.lower()] = one
    for window in list(select.find_all(exp.Window)):
        if window.find_ancestor(exp.Select) is select:
            _put(window, known, sql)


def _put(window: exp.Window, known: dict[str, exp.Window], sql: str) -> None:
    name = window.args.get("alias")
    if not isinstance(name, exp.Identifier):
        return
    base = known.get(name.name.lower())
    if base is None:
        raise SqlError(
            f"there is no window {name.name}",
            place=place_of(name, sql),
            hint=nearest(name.name, [one.name for one in known.values()])
            or f"write WINDOW {name.name} AS (PARTITION BY k ORDER BY ts) after the query",
        )
    place = place_of(window, sql)
    window.set("alias", None)
    for part in _PARTS:
        more = base.args.get(part)
        if not more:
            continue
        if window.args.get(part):
            raise SqlError(
                f"the window {name.name} already defines this",
                place=place,
                detail="a clause inherited from another window cannot be redefined",
            )
        copied = [copy_of(one, place) for one in more] if isinstance(more, list) else None
        window.set(part, copy_of(more, place) if copied is None else copied)
