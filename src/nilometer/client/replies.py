"""Reads a server's replies: values, or the errors that they report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from nilometer import errors
from nilometer.client.arrow_messages import ArrowMessages
from nilometer.client.rows import Answer, Page, Rows, instant_of
from nilometer.errors import LogGapError, NilometerError, Place, SqlError, UnreachableError

ARROW: Final = "application/vnd.apache.arrow.stream"
_END_OF_ARROW: Final = b"\xff\xff\xff\xff\0\0\0\0"
_SHOWN: Final = 200


@dataclass(frozen=True)
class Reply:
    """A reply; the names of its headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_json(reply: Reply) -> Any:
    """The JSON value of a reply."""
    try:
        return json.loads(reply.content)
    except ValueError:
        raise _not_ours(reply) from None


def read_nothing(reply: Reply) -> None:
    """Read a reply that only confirms success."""


def read_rows(reply: Reply) -> Rows:
    """The result of a statement."""
    if reply.media_type != ARROW:
        content = read_json(reply)
        names = [one["name"] for one in content["columns"]]
        columns = {name: [row[name] for row in content["rows"]] for name in names}
        return Rows(pa.table(columns), content["message"], content["is_cut"])
    table, metadata = _read_arrow(reply)
    return Rows(table, metadata.get("message"), metadata.get("is_cut") == "true")


def read_page(reply: Reply) -> Page:
    """A page of results."""
    table, metadata = _read_arrow(reply)
    return Page(
        table,
        next=metadata["offset"],
        watermark=instant_of(metadata.get("watermark")),
        at_end=metadata["at_end"] == "true",
    )


def read_answer(reply: Reply) -> Answer:
    """The current answer of a query."""
    table, metadata = _read_arrow(reply)
    return Answer(
        table,
        is_cut=metadata["is_cut"] == "true",
        instant=instant_of(metadata.get("instant")),
        offset=metadata["offset"],
    )


def read_table(reply: Reply) -> pa.Table:
    """A file of rows as a table, without copying it."""
    if reply.media_type != ARROW:
        raise _not_ours(reply)
    is_whole = reply.content.endswith(_END_OF_ARROW)
    try:
        with pa.ipc.open_stream(pa.py_buffer(reply.content)) as reader:
            table = reader.read_all()
    except (pa.ArrowException, OSError):
        is_whole = False
    if not is_whole:
        raise UnreachableError("the reply of the server is incomplete")
    return table


def error_in(reply: Reply, statement: str | None = None) -> NilometerError:
    """The error that a reply reports; `statement` is the text that its position refers to."""
    try:
        report = json.loads(reply.content)["error"]
        return make_error(report, statement)
    except (ValueError, KeyError, TypeError):
        return _not_ours(reply)


def make_error(report: Mapping[str, Any], statement: str | None = None) -> NilometerError:
    """An error of the kind reported; of an unknown kind, a NilometerError."""
    message, detail, hint = report["message"], report.get("detail"), report.get("hint")
    kind = getattr(errors, str(report.get("kind")), None)
    if isinstance(kind, type) and issubclass(kind, SqlError):
        at = report.get("position")
        place = Place(statement, at["start"], at["end"]) if at and statement is not None else None
        return kind(message, place=place, detail=detail, hint=hint)
    if isinstance(kind, type) and issubclass(kind, NilometerError):
        return kind(message, detail=detail, hint=hint)
    return NilometerError(message, detail=detail, hint=hint)


def make_gap(report: Mapping[str, Any], oldest: str | None) -> LogGapError:
    """The error for rows that are gone; its `oldest` is the offset from which all are there."""
    error = report["error"]
    return LogGapError(
        error["message"],
        detail=error.get("detail"),
        hint=error.get("hint"),
        rows=report["rows"],
        oldest=oldest,
    )


def _read_arrow(reply: Reply) -> tuple[pa.Table, dict[str, str]]:
    if reply.media_type != ARROW:
        raise _not_ours(reply)
    messages = ArrowMessages()
    batches = list(messages.feed(reply.content))
    if messages.schema is None or not messages.is_ended or not batches:
        raise UnreachableError("the reply of the server is incomplete")
    table = pa.Table.from_batches([one.rows for one in batches], schema=messages.schema)
    return table, batches[-1].metadata


def _not_ours(reply: Reply) -> UnreachableError:
    if 300 <= reply.status < 400:
        return UnreachableError(
            "the server redirects to another address",
            detail=f"to {reply.headers.get('location', 'an unknown address')}",
            hint="use that address directly; tokens are not sent to other servers",
        )
    text = reply.content[:_SHOWN].decode(errors="replace")
    return UnreachableError(
        f"the server answered with status {reply.status}",
        detail=" ".join(text.split()) or None,
        hint="is this the address of a Nilometer server?",
    )
