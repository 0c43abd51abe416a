"""Every call to a server: the request, and how its reply is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from nilometer.client.parameter_json import value_to_json
from nilometer.client.replies import (
    ARROW,
    Reply,
    error_in,
    read_answer,
    read_json,
    read_nothing,
    read_page,
    read_rows,
)
from nilometer.client.rows import Answer, Page, Rows

Value = TypeVar("Value")

_NAME: Final = re.compile(r"\s*[^\W\d]\w*\s*")
_STARTS: Final = ("start", "now", "latest")
MOST_ROWS: Final = 10_000
"""The maximum number of rows on one page."""


@dataclass(frozen=True)
class Call(Generic[Value]):
    """One request, and how its reply is read."""

    method: str
    path: str
    read: Callable[[Reply], Value]
    body: Mapping[str, Any] | None = None
    params: Mapping[str, str | list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def finish(self, reply: Reply) -> Value:
        """The value in a reply; raises the error that it reports."""
        if not 200 <= reply.status < 300:
            raise error_in(reply, (self.body or {}).get("statement"))
        return self.read(reply)


def execute(statement: str, values: Mapping[str, object]) -> Call[Rows]:
    accept = {"Accept": f"{ARROW}, application/json"}
    body = {"statement": statement, "parameters": _as_json(values)}
    return Call("POST", "/sql", read_rows, body, headers=accept)


def _as_json(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: value_to_json(value) for name, value in values.items()}


def explain(statement: str, form: str, values: Mapping[str, object]) -> Call[str]:
    def read(reply: Reply) -> str:
        return str(read_json(reply)["plan"])

    body = {"statement": statement, "form": form, "parameters": _as_json(values)}
    return Call("POST", "/explain", read, body)


def find_or_create(text: str, name: str | None, temporary: bool | None) -> Call[dict[str, Any]]:
    """A query by its name, or one created from a SELECT."""
    if name is None and _NAME.fullmatch(text):
        return status(text.strip())
    chosen = name is None if temporary is None else temporary
    body = {"statement": text, "name": name, "temporary": chosen}
    return Call("POST", "/queries", read_json, body)


def try_sensor(stream: str, sensor: str | None, seconds: float, rows: int) -> Call[dict[str, Any]]:
    body = {"stream": stream, "sensor": sensor, "seconds": seconds, "rows": rows}
    return Call("POST", "/sensors/try", read_json, body)


def back_up(destination: str | None) -> Call[dict[str, Any]]:
    return Call("POST", "/backups", read_json, {"destination": destination})


def list_of(what: str) -> Call[list[dict[str, Any]]]:
    return Call("GET", f"/{what}", read_json)


def put_dashboard(name: str, dashboard: Mapping[str, Any]) -> Call[dict[str, Any]]:
    return Call("PUT", f"/dashboards/{quote(name, safe='')}", read_json, dashboard)


def status(query: str) -> Call[dict[str, Any]]:
    return Call("GET", _query(query), read_json)


def health(query: str) -> Call[list[dict[str, Any]]]:
    return Call("GET", f"{_query(query)}/health", read_json)


def start(query: str) -> Call[dict[str, Any]]:
    return Call("POST", f"{_query(query)}/start", read_json)


def stop(query: str) -> Call[dict[str, Any]]:
    return Call("POST", f"{_query(query)}/stop", read_json)


def drop(query: str) -> Call[None]:
    return Call("DELETE", _query(query), read_nothing)


def page(query: str, start: str, limit: int) -> Call[Page]:
    """Stored rows; `start` is start, now, latest, or an offset."""
    params: dict[str, str | list[str]] = {
        **_begin(start),
        "limit": str(limit),
        "format": "arrow",
        "follow": "false",
    }
    return Call("GET", f"{_query(query)}/results", read_page, params=params)


def answer(query: str, limit: int) -> Call[Answer]:
    params: dict[str, str | list[str]] = {"limit": str(limit), "format": "arrow"}
    return Call("GET", f"{_query(query)}/answer", read_answer, params=params)


def follow(query: str, start: str) -> Call[None]:
    """Rows as they come; the reply is read as it arrives."""
    params: dict[str, str | list[str]] = {
        **_begin(start),
        "format": "arrow",
        "follow": "true",
    }
    return Call("GET", f"{_query(query)}/results", read_nothing, params=params)


def _begin(start: str) -> dict[str, str]:
    return {"from": start} if start in _STARTS else {"offset": start}


def _query(name: str) -> str:
    return f"/queries/{quote(name, safe='')}"


class Pages:
    """One page after the other, up to the end or a number of rows."""

    def __init__(self, query: str, start: str, limit: int | None) -> None:
        self._query = query
        self._start: str | None = start
        self._left = limit

    def next(self) -> Call[Page] | None:
        """The next call; None if there is no more."""
        if self._start is None:
            return None
        size = MOST_ROWS if self._left is None else min(MOST_ROWS, self._left)
        return page(self._query, self._start, max(1, size))

    def note_page(self, page: Page) -> None:
        """Take note of a page."""
        left = None if self._left is None else self._left - len(page)
        is_done = page.at_end or (left is not None and left <= 0)
        self._start, self._left = (None if is_done else page.next), left
