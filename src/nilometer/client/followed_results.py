"""The progress of following the results of a query."""

from __future__ import annotations

from datetime import datetime

from nilometer.client.following import FollowState


class FollowedResults:
    """What is known of followed results, by either client."""

    def __init__(self, state: FollowState) -> None:
        self._state = state

    @property
    def offset(self) -> str:
        """The offset after all rows that were yielded: pass it to `follow` to resume there."""
        return self._state.offset

    @property
    def watermark(self) -> datetime | None:
        """No later row has an earlier time; None if unknown."""
        return self._state.watermark

    @property
    def phase(self) -> str | None:
        """The query's phase, if it has changed since: running, stopped, failed, restarting."""
        return self._state.phase

    @property
    def error(self) -> str | None:
        """Why the query has failed, if it has."""
        return self._state.error

    @property
    def is_lost(self) -> bool:
        """Whether the connection is lost and being re-established."""
        return self._state.is_lost
