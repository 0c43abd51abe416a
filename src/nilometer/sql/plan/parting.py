"""How the rows of a key are spread over several buckets of a join."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parting:
    """The rows of one stream of a join are dealt out to parts; those of the others are copied."""

    stream: str
    """The name of the stream in the query."""
    parts: int
    """1: the rows of a key are in one bucket, but the plan is such that this can change."""
