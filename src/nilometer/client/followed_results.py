"""How far somebody has come who follows the results of a query."""

from __future__ import annotations

from datetime import datetime

from nilometer.client.following import FollowState


class FollowedResults:
    """What is known of results that are followed, whichever way."""

    def __init__(self, state: FollowState) -> None:
        self._state = state

    @property
    def offset(self) -> str:
        """The place after all rows that were yielded: give it to `follow` to go on there."""
        return self._state.offset

    @property
    def watermark(self) -> datetime | None:
        """No row that follows has an earlier time; None if that is not known."""
        return self._state.watermark

    @property
    def phase(self) -> str | None:
        """What the query does, if that has changed since: running, stopped, failed, restarting."""
        return self._state.phase

    @property
    def error(self) -> str | None:
        """Why the query has failed, if it has."""
        return self._state.error

    @property
    def is_lost(self) -> bool:
        """Whether the connection is lost, and is being made again."""
        return self._state.is_lost
