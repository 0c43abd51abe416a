"""The requests of `nilometer sql` and `nilometer explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nilometer.commands.options import (
    LOCAL_MEGABYTES,
    DatabaseLocation,
    EngineName,
    ExecutionName,
    Follow,
    Format,
    Moment,
    Output,
    Sources,
)
from nilometer.commands.server_access import Server
from nilometer.commands.statements import OneStatement, split_statements
from nilometer.errors import InputError


@dataclass(frozen=True)
class Request:
    """A request of `nilometer sql`."""

    text: str
    sources: Sources
    output: Output = field(default_factory=Output)
    follow: Follow | None = None
    buckets: int | None = None
    at: Moment | None = None
    execution: ExecutionName = ExecutionName.AUTO
    location: DatabaseLocation | None = None
    engine: EngineName = EngineName.AUTO
    local_megabytes: int = LOCAL_MEGABYTES
    """The local engine is chosen up to this total size of all files."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    server: Server | None = None
    """The server that answers instead of this process."""

    def __post_init__(self) -> None:
        for stream in self.sources.streams:
            if stream.time is None and self.follow is None:
                raise InputError(
                    f"{stream.name} needs a time column",
                    hint=f"write --stream {stream.name}={stream.path}:TIMECOLUMN; only with "
                    "--follow can it be the arrival time",
                )
        if self.at is not None and self.follow is not None:
            raise InputError(
                "--at is for files that are read once, as they are",
                hint="leave it out to see the changes, or add --answer to see the answer change",
            )
        if self.follow is not None and self.follow.answer and self.output.form is not Format.TABLE:
            raise InputError(
                f"--answer is shown as a table, not as {self.output.form}",
                hint=f"without --answer the changes are written as {self.output.form}",
            )

    def statements(self) -> list[OneStatement]:
        """The statements of the text, if this output supports all of them."""
        statements, form = split_statements(self.text, self.parameters), self.output.form
        queries = [one for one in statements if one.is_query and not one.is_explain]
        if form is not Format.TABLE and len(statements) > 1:
            raise InputError(
                f"the answers to {len(statements)} statements cannot go to one {form} file",
                hint="run them one by one, or show them with --format table",
            )
        if self.follow is not None and len(queries) > 1:
            raise InputError(
                f"--follow runs one query, got {len(queries)}",
                hint="run each in a terminal of its own",
            )
        return statements
