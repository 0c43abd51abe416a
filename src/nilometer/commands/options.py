"""The options of the command line, parsed and checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from nilometer.commands.time_option import take_form
from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer.model.time import parse_signed_duration
from nilometer.model.time_forms import TimeForm


class Format(StrEnum):
    """Output format of answers."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class ExecutionName(StrEnum):
    """How windowed queries learn that time has advanced."""

    AUTO = "auto"
    ITA = "ita"
    TPA = "tpa"
    NTA = "nta"


class EngineName(StrEnum):
    """The engines for statements over files."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


LOCAL_MEGABYTES: Final = 64
"""Files up to this total size are read by this process by default."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The moment at which an answer is shown: an instant, or (None) after the last change."""

    instant: datetime | None = None


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """The location of a database: its folder, and its catalog and logs if they are elsewhere."""

    folder: Path
    catalog: str | None = None
    logs: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or a table: its name in statements, its files, and its time column."""

    name: str
    path: Path
    time: str | None = None
    form: TimeForm | None = None
    """The form of the times, if specified."""
    end: str | None = None
    """The column that says until when a row counts, if one was given."""

    @property
    def times(self) -> str | tuple[str, str] | None:
        """The time column, or the columns of start and end."""
        if self.time is None or self.end is None:
            return self.time
        return self.time, self.end


@dataclass(frozen=True)
class Sources:
    """All sources that statements can read."""

    streams: tuple[Source, ...] = ()
    tables: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for source in (*self.streams, *self.tables):
            if source.name.lower() in seen:
                raise InputError(f"the name {source.name} is given twice", hint="choose another")
            seen.add(source.name.lower())


@dataclass(frozen=True)
class Follow:
    """How folders are read as streams."""

    lateness: Mapping[str, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Path | None = None
    catch_up: bool = False
    """End when all existing files have been read."""
    answer: bool = False
    """Show the whole answer whenever it changes, instead of the changes."""

    def __post_init__(self) -> None:
        if self.answer and self.checkpoint is not None:
            raise InputError(
                "--answer and --checkpoint do not go together",
                detail="an answer that is shown is not kept when the command ends",
                hint="write the changes instead; or keep the answer with nm.keep_answer in Python",
            )


@dataclass(frozen=True, slots=True)
class Output:
    """Where answers are written, and in which format."""

    form: Format = Format.TABLE
    path: Path | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        if self.form is Format.PARQUET and self.path is None:
            raise InputError(
                "Parquet cannot be written to the screen", hint="name a folder with --output"
            )
        if self.path is None:
            return
        if self.form is not Format.PARQUET and self.path.is_dir():
            raise InputError(
                f"cannot write {self.path}",
                detail="it is a folder",
                hint=f"{self.form} is written to a file: name one",
            )
        if not self.path.absolute().parent.is_dir():
            raise InputError(
                f"cannot write {self.path}", detail=f"there is no folder {self.path.parent}"
            )


def read_location(
    folder: Path | None, catalog: str | None, logs: str | None
) -> DatabaseLocation | None:
    """The database of --db, --catalog and --logs."""
    if folder is not None:
        return DatabaseLocation(folder.expanduser(), catalog, logs)
    for option, value in (("--catalog", catalog), ("--logs", logs)):
        if value is not None:
            raise InputError(f"{option} is for a database", hint="name its folder with --db")
    return None


def read_sources(streams: Sequence[str], tables: Sequence[str]) -> Sources:
    """The sources of --stream and --table."""
    return Sources(tuple(map(read_stream, streams)), tuple(map(read_table, tables)))


def read_stream(text: str) -> Source:
    """NAME=PATH:TIMECOLUMN[FORM]; column and form may be missing, and the path may have colons.

    NAME=PATH:START..END names two columns, the start and end of a row's validity.

    >>> read_stream("A=data/cam:1.csv:ts[epoch ms]").form
    EpochTimes(unit=<EpochUnit.MILLIS: 'ms'>)
    """
    name, value = _split_named(text, "--stream", "--stream A=camera1.csv:ts")
    value, form = take_form(value)
    path, colon, column = value.rpartition(":")
    if not colon or "/" in column:
        path, colon, column = value, "", ""
    if (colon and (not path or not column)) or (form is not None and not column):
        raise InputError(
            "cannot read --stream",
            detail=f"got {text!r}",
            hint="write NAME=PATH:TIMECOLUMN, such as --stream A=camera1.csv:ts",
        )
    start, dots, end = column.partition("..")
    if dots and not (start.strip() and end.strip()):
        raise InputError(
            "cannot read --stream", detail=f"got {text!r}", hint="write A=events.csv:start..end"
        )
    return Source(name, _path(path), start.strip() or None, form, end.strip() or None)


def read_table(text: str) -> Source:
    """NAME=PATH.

    >>> read_table("Stores=stores.csv").path
    PosixPath('stores.csv')
    """
    name, value = _split_named(text, "--table", "--table Stores=stores.csv")
    return Source(name, _path(value))


def read_durations(option: str, texts: Sequence[str], streams: Sequence[Source]) -> dict[str, str]:
    """Durations per stream: NAME=2s for one, 2s for all without their own.

    >>> read_durations("--lateness", ["2s", "A=1s"], [read_stream("A=a:t"), read_stream("B=b:t")])
    {'A': '1s', 'B': '2s'}
    """
    names = [stream.name for stream in streams]
    general, own = "", dict.fromkeys(names, "")
    for text in texts:
        name, equals, duration = text.rpartition("=")
        parse_signed_duration(duration)
        if not equals:
            general = duration
            continue
        known = next((known for known in names if known.lower() == name.strip().lower()), None)
        if known is None:
            raise InputError(
                f"{option} names no stream: {name}",
                detail=f"the streams are {', '.join(names) or 'none'}",
                hint=nearest(name, names),
            )
        own[known] = duration
    chosen = {name: duration or general for name, duration in own.items()}
    return {name: duration for name, duration in chosen.items() if duration}


def read_moment(text: str) -> Moment:
    """An instant, in UTC unless it has a zone of its own; or the word end.

    >>> read_moment("2026-01-31 12:00:00.5").instant, read_moment("end").instant
    (datetime.datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=datetime.timezone.utc), None)
    """
    if text.strip().lower() == "end":
        return Moment()
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            "cannot read --at",
            detail=f"got {text!r}",
            hint="write an instant such as '2026-01-31 12:00:00.5' (UTC), or end",
        ) from None
    return Moment(instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC))


def require_follow(options: Mapping[str, object]) -> None:
    """Refuse options that have no meaning when files are read once."""
    for option, value in options.items():
        if value:
            raise InputError(
                f"{option} is only for continuous queries",
                hint="add --follow, or --catch-up to end with the files that are there",
            )


def _split_named(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise InputError(f"cannot read {option}", detail=f"got {text!r}", hint=f"write {example}")
    return name.strip(), value.strip()


def _path(text: str) -> Path:
    if "://" in text:
        raise InputError(
            "only files on this machine can be read here",
            detail=f"got {text}",
            hint="in Python any DataFrame can be a stream: nm.connect(spark).create_stream",
        )
    return Path(text).expanduser()
