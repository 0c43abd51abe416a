"""Deletes a log with all that belongs to it."""

from __future__ import annotations

from pathlib import Path

from nilometer.log.location import storage_at


def delete_log(location: str | Path) -> None:
    """Delete a log that nobody writes any more, if it is there."""
    storage_at(location).remove()
