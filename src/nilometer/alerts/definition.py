"""An alert as it was declared."""

from __future__ import annotations

from dataclasses import dataclass, field

from nilometer.alerts.rule import Rule
from nilometer.model.time import format_duration

DAY = 86_400_000_000


@dataclass(frozen=True)
class AlertLimits:
    """The limits of an alert."""

    history: int = 30 * DAY
    """How long its history is kept, in microseconds."""
    groups: int = 1000
    """The maximum number of its groups."""


@dataclass(frozen=True)
class AlertDefinition:
    """CREATE ALERT name ON source [WHEN …] …"""

    name: str
    source: str
    condition: str | None
    """None: it never fires, and reports only silence."""
    clear: str | None = None
    """None: it clears when the condition does not hold."""
    per: tuple[str, ...] = ()
    rule: Rule = field(default_factory=Rule)
    limits: AlertLimits = field(default_factory=AlertLimits)

    @property
    def sentence(self) -> str:
        """The condition, in one line."""
        if self.condition is None:
            return f"no rows arrive for {format_duration(self.rule.no_data or 0)}"
        text = " ".join(self.condition.split())
        return text if not self.rule.hold else f"{text} for {format_duration(self.rule.hold)}"
