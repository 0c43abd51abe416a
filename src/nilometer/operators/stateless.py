"""What operators without state have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nilometer.operators.change_operator import StoredChunks
from nilometer.operators.content import Content
from nilometer.operators.share import Share


class Stateless:
    """An operator whose output in a period depends on its input in that period only."""

    @property
    def stored(self) -> Sequence[StoredChunks]:
        """Everything that it keeps in the store: nothing."""
        return ()

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs: nothing."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken."""

    def content(self, marks: Sequence[int]) -> Content:
        """What its state says: nothing."""
        return ()

    def take_over(self, old: Sequence[Stateless], shares: Sequence[Share]) -> None:
        """Take over what belongs to this bucket: nothing."""
