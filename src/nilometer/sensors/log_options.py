"""Options of a declaration that belong to its log and to the manager, not to the stream type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import DurationError, InputError, SqlError
from nilometer.log.options import Durability, Fsync, LogOptions, WhenFull
from nilometer.model.options import parse_size
from nilometer.model.time import parse_duration
from nilometer.model.time_forms import EpochTimes, read_unit
from nilometer.sql.ddl.nodes import CreateTable
from nilometer.sql.ddl.parts import StreamDef
from nilometer.sql.statements import read_one

HOUR: Final = 3_600_000_000
_COLUMNS: Final = "write them as in CREATE TABLE: 'room STRING, f DOUBLE'"


@dataclass(frozen=True)
class StreamOptions:
    """The options of WITH (…), parsed; times are in microseconds."""

    log: LogOptions = field(default_factory=LogOptions)
    max_ahead: int = HOUR
    """How far a reading's time may be ahead of the clock."""
    linger: int = 20_000
    """How long readings are collected before they are appended together."""
    epoch: EpochTimes | None = None
    """What a number for a TIMESTAMP counts, if its column does not specify it."""
    unit: str | None = None
    """The name of the pre-processing unit that readings pass through."""
    unit_reads: pa.Schema | None = None
    """The columns of a reading as the unit receives it; None: the declared ones."""
    of_type: Mapping[str, str] | None = None
    """The remaining options, which belong to the stream type."""


@dataclass(frozen=True)
class StreamDefaults:
    """Defaults for the logs of streams that do not specify these options."""

    history: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of WITH (…), such as disk."""

    def fill(self, stream: StreamDef) -> StreamDef:
        """Complete a statement's options with the defaults."""
        options = {**self.options, **stream.options}
        return replace(stream, history=stream.history or self.history, options=options)


def read_stream_options(options: Mapping[str, str], history: int = 0) -> StreamOptions:
    """Parse the options; an option that cannot be read raises InputError.

    >>> read_stream_options({"disk": "1.5 GB", "url": "x"}).of_type
    {'url': 'x'}
    """
    log: dict[str, Any] = {"history": history}
    own: dict[str, Any] = {}
    others: dict[str, str] = {}
    for name, text in options.items():
        if name in _LOG:
            log[name] = _read(name, text, _LOG[name])
        elif name in _OWN:
            own[name] = _read(name, text, _OWN[name])
        else:
            others[name] = text
    return replace(StreamOptions(LogOptions(**log), of_type=others), **own)


def _read(name: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except (InputError, DurationError) as error:
        raise InputError(
            f"option {name} cannot be used", detail=f"{error.message}: {text!r}", hint=error.hint
        ) from error


def _one_of(choices: Mapping[str, Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if (choice := choices.get(text.strip().lower())) is None:
            raise InputError("unknown value", hint=f"write one of {', '.join(choices)}")
        return choice

    return parse


def _name(text: str) -> str:
    if not text.strip():
        raise InputError("has no name", hint="leave the option out instead")
    return text.strip()


def _columns(text: str) -> pa.Schema:
    """Columns in the syntax of CREATE TABLE."""
    try:
        read = read_one(f"CREATE TABLE t ({text})")
    except SqlError as error:
        raise InputError(error.message, hint=_COLUMNS) from error
    if not isinstance(read, CreateTable):
        raise InputError("are not columns", hint=_COLUMNS)
    return pa.schema([one.field for one in read.columns])


def _positive(parse: Callable[[str], int]) -> Callable[[str], int]:
    def parse_positive(text: str) -> int:
        if (number := parse(text)) <= 0:
            raise InputError("must be greater than zero", hint="leave the option out instead")
        return number

    return parse_positive


_LOG: Final[dict[str, Callable[[str], Any]]] = {
    "fsync": _one_of({one.value: one for one in Fsync if one is not Fsync.REPLAYED}),
    "fsync_every": _positive(parse_duration),
    "memory": parse_size,
    "segment": _positive(parse_size),
    "disk": _positive(parse_size),
    "when_full": _one_of({one.value: one for one in WhenFull}),
    "durability": _one_of({one.value: one for one in Durability}),
    "ship_size": _positive(parse_size),
    "ship_every": _positive(parse_duration),
    "write_ahead": _positive(parse_size),
}
_OWN: Final[dict[str, Callable[[str], Any]]] = {
    "max_ahead": parse_duration,
    "linger": parse_duration,
    "epoch": lambda text: EpochTimes(read_unit(text)),
    "unit": _name,
    "unit_reads": _columns,
}
OPTIONS: Final = (*_LOG, *_OWN)
"""The names of these options."""
