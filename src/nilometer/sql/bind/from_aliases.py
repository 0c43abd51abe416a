"""Aliases in FROM: AS S (a, b), and further ones of a table, which become entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlglot import exp

from nilometer.errors import AmbiguousNameError, SqlError
from nilometer.model.names import nearest
from nilometer.sql.parse.find_names import find_name
from nilometer.sql.parse.places import place_of

_ALIAS: Final = re.compile(r"[A-Za-z]\d*")


def spell_out(trees: Sequence[exp.Expr], known: Sequence[str]) -> Iterator[exp.Expr]:
    """The entries of FROM, each with its table: STEAM writes FROM SensorTables A, B, C.

    What is known has a name of its own, and is not an alias.
    """
    before: exp.Table | None = None
    for entry in trees:
        spelled = entry
        if before is not None and isinstance(entry, exp.Table):
            spelled = _aliased(before, entry) if _is_alias(entry, before, known) else entry
        before = spelled if isinstance(spelled, exp.Table) else None
        yield spelled


def rename_columns(
    entry: exp.Expr, columns: Mapping[str, exp.Expr], sql: str
) -> Mapping[str, exp.Expr]:
    """The columns under the names that an alias gives them: AS S (a, b)."""
    alias = entry.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    if alias is None or not names:
        return columns
    if len(names) != len(columns):
        raise SqlError(
            f"{entry.alias} lists {len(names)} column names, but has {len(columns)} columns",
            place=place_of(alias, sql),
            detail=f"it has {', '.join(columns)}",
            hint="name all of them, or none",
        )
    renamed = dict(zip((name.name for name in names), columns.values(), strict=True))
    if len(renamed) != len(columns):
        raise AmbiguousNameError(
            f"{entry.alias} uses the same name for two columns", place=place_of(alias, sql)
        )
    return renamed


def _is_alias(entry: exp.Table, before: exp.Table, known: Sequence[str]) -> bool:
    """Whether an entry is a further alias of the table before it: a letter, with a number."""
    if not before.alias or entry.alias or entry.args.get("db") or not _is_listed(entry):
        return False
    if not isinstance(entry.this, exp.Identifier) or not _ALIAS.fullmatch(entry.name):
        return False
    return find_name(entry.this, known) is None and nearest(entry.name, known) is None


def _aliased(table: exp.Table, alias: exp.Table) -> exp.Table:
    """The same table under another name."""
    copied = table.copy()
    own = alias.args.get("alias")
    name = exp.TableAlias(this=alias.this.copy())
    if own is not None and own.args.get("stream_window") is not None:
        name.set("stream_window", own.args["stream_window"])
    copied.set("alias", name)
    return copied


def _is_listed(entry: exp.Table) -> bool:
    """Whether an entry is part of a comma-separated list, not of JOIN … ON."""
    join = entry.parent
    return isinstance(join, exp.Join) and not join.args.get("on") and not join.args.get("using")
