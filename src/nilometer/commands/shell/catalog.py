"""The contents of a database, as a shell lists and completes them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from nilometer.commands.shell.place import Place
from nilometer.commands.show_sensors import stream_line
from nilometer.commands.tables import counted
from nilometer.model.names import count
from nilometer.model.time import read_instant
from nilometer.sql.expressions.scalars import quote_name

_LISTS: Final = {
    "stream": "SHOW STREAMS",
    "table": "SHOW TABLES",
    "view": "SHOW VIEWS",
    "query": "SHOW QUERIES",
}
_LONGEST: Final = 50
"""The description of each is at most this long, to fit on a screen: \\d name shows all."""
_PLURALS: Final = {"query": "queries"}


@dataclass(frozen=True)
class Listed:
    """Something that has a name."""

    name: str
    kind: str
    """stream, sensor table, table, view or query."""
    about: str | None = None


def list_all(place: Place) -> list[Listed]:
    """All streams, tables, views and queries, by kind and name."""
    listed = []
    for kind, statement in _LISTS.items():
        for row in place.look(statement).to_pylist():
            row_kind = str(row.get("kind") or kind)
            if kind == "table" and row_kind != "table":
                continue  # sensor tables are among the streams
            listed.append(Listed(row["name"], row_kind, _description(kind, row)))
    return listed


def state_of(place: Place, name: str) -> str | None:
    """The state of a stream or query, in one line; None if unknown."""
    for row in place.look("SHOW STREAMS").to_pylist():
        if row["name"].lower() == name.lower() and row.get("sensors") is not None:
            mark = row["watermark"]
            return stream_line({**row, "watermark": None if mark is None else read_instant(mark)})
    for row in place.look("SHOW QUERIES").to_pylist():
        if row["name"].lower() == name.lower():
            rows = "" if row.get("rows") is None else f", {counted(row['rows'], 'row')} of results"
            letters = row.get("dead_letters")
            refused = f", {count(letters, 'dead letter')}" if letters else ""
            return f"{row['state']}{rows}{refused}"
    return None


def as_table(listed: list[Listed]) -> pa.Table:
    """A list as rows."""
    columns = {
        "name": [one.name for one in listed],
        "kind": [one.kind for one in listed],
        "about": [None if one.about is None else _cut(one.about) for one in listed],
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def counted_kinds(listed: list[Listed]) -> str:
    """The number of each kind.

    >>> counted_kinds([Listed("a", "stream"), Listed("b", "stream"), Listed("q", "query")])
    '2 streams, 1 query'
    """
    kinds = list(dict.fromkeys(one.kind for one in listed))
    numbers = {kind: sum(one.kind == kind for one in listed) for kind in kinds}
    return ", ".join(
        f"{n} {_PLURALS[kind]}" if kind in _PLURALS and n != 1 else count(n, kind)
        for kind, n in numbers.items()
    )


def _description(kind: str, row: Mapping[str, object]) -> str | None:
    match kind:
        case "stream":
            error = row.get("error")
            return f"from {row['stream_type']}" + (f": {error}" if error else "")
        case "table":
            rows = row.get("rows")
            return None if rows is None else count(int(str(rows)), "row")
        case "view":
            return " ".join(str(row["text"]).split())
    state = str(row["state"])
    error = f" ({row['error']})" if row.get("error") else ""
    return f"{state}{error}: {row['query']}"


@dataclass
class Names:
    """Names and columns for completion, read in the background; empty until they are known."""

    place: Place
    listed: list[Listed] = field(default_factory=list)
    _columns: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> None:
        """Read everything again in the background."""
        threading.Thread(target=self._read, name="names", daemon=True).start()

    def columns(self, name: str) -> list[str]:
        """The columns of a stream or table; empty if they cannot be read."""
        columns = self._columns.get(name.lower())
        if columns is None:
            columns = self._columns[name.lower()] = self._describe(name)
        return columns

    def _read(self) -> None:
        with self._lock:
            try:
                self.listed = list_all(self.place)
            except Exception:  # even if the place is closed: completion must not report errors
                return
            self._columns.clear()

    def _describe(self, name: str) -> list[str]:
        known = next((one.name for one in self.listed if one.name.lower() == name.lower()), None)
        if known is None:
            return []
        try:
            rows = self.place.look(f"DESCRIBE {quote_name(known)}")
        except Exception:  # as above
            return []
        if "column" not in rows.column_names:
            return []
        return [str(one).rpartition(".")[2] for one in rows.column("column").to_pylist()]
