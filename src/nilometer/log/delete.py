"""Deletes a log with everything that belongs to it."""

from __future__ import annotations

from pathlib import Path

from nilometer.log.location import storage_at


def delete_log(location: str | Path) -> None:
    """Delete a log that has no writer any more, if it exists."""
    storage_at(location).remove()
