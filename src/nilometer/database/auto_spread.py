"""Hot keys of joins: when to spread them, over how many buckets, and how a user would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nilometer.database.bucket_options import hosted_id, parting_of, spreads_by_itself
from nilometer.database.spread import Spread
from nilometer.errors import InputError
from nilometer.sensors.catalog.stored_queries import NamedQuery
from nilometer.sql.expressions.scalars import quote_name
from nilometer.sql.plan.changes_plan import ChangesPlan, Plan
from nilometer.sql.rules.spread_joins import choose_stream, divisors

LASTS: Final = 60_000_000
"""A key is spread when one bucket has been a bottleneck for so long (microseconds), and"""
REST: Final = 600_000_000
"""at most once in so long."""


@dataclass(frozen=True)
class SpreadJoin:
    """How the join of a running query is spread, or can be."""

    stream: str
    """The stream whose rows are dealt out,"""
    parts: int
    """and to how many buckets those of a key are."""
    by_itself: bool = False
    """Whether the database spreads it further by itself."""
    is_alterable: bool = True
    """Whether ALTER QUERY can spread it; otherwise it must be created anew."""

    def more_parts(self, spreads: Sequence[Spread]) -> int | None:
        """Over how many buckets the rows of its hot key should be spread; None: it is well."""
        hot = next((one for one in spreads if one.is_bottleneck and self._is_hot(one)), None)
        if hot is None:
            return None
        buckets = len(hot.bucket_rows)
        least = self.parts + 1 if self.parts > 1 else (hot.key_share or 0.0) * buckets
        possible = [parts for parts in divisors(buckets) if parts > self.parts]
        return next((parts for parts in possible if parts >= least), None)

    def _is_hot(self, spread: Spread) -> bool:
        """Whether rows of one key make the bottleneck of this join."""
        return spread.is_one_key and len(spread.streams) > 1 and self.stream in spread.streams

    def remedy(self, name: str, spreads: Sequence[Spread]) -> str | None:
        """What helps against a hot key, in words; None: nothing is wrong, or nothing helps."""
        parts, name = self.more_parts(spreads), name if name.isidentifier() else quote_name(name)
        if parts is None:
            return None
        if self.by_itself:
            return "the database spreads it automatically, at most every ten minutes"
        if self.is_alterable:
            return f"ALTER QUERY {name} SET (spread = {parts}) shares it among {parts} buckets"
        return (
            f"DROP QUERY {name}, and CREATE QUERY {name} WITH (spread = {parts}) AS … shares it "
            f"among {parts} buckets"
        )


@dataclass
class HotKeyWatch:
    """Waits until a hot key has lasted for a while, and rests after each change."""

    _since: int | None = None
    _rests_until: int = 0

    def is_due(self, now: int, *, is_hot: bool) -> bool:
        """Whether a key that is hot now is to be spread."""
        if not is_hot:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if now - self._since < LASTS or now < self._rests_until:
            return False
        self._since, self._rests_until = None, now + REST
        return True


def join_of(query: NamedQuery, plan: Plan) -> SpreadJoin | None:
    """The join of a query with buckets, if it is one that can be spread."""
    if hosted_id(query) is not None:
        return None
    parting = parting_of(query.options)
    if parting is not None:
        return SpreadJoin(parting.stream, parting.parts, spreads_by_itself(query))
    try:
        stream = choose_stream(plan, None)
    except InputError:
        return None
    return SpreadJoin(stream, 1, is_alterable=not isinstance(plan, ChangesPlan))
