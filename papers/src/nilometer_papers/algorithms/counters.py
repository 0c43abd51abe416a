"""Counts of an algorithm's work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Counts since the start; the papers' cost models count the same things."""

    tuples: int = 0
    """Tuples that arrived."""
    time_tests: int = 0
    """Timestamps compared with a bound: two for a test of inclusion in a period."""
    value_tests: int = 0
    """Tests of the join condition on values."""
    probes: int = 0
    """Hash buckets looked up."""
    visited: int = 0
    """Tuples that for-loops compared with new ones or with combinations: Golab's unit of cost."""
    results: int = 0
    removed: int = 0
    """Tuples, or combinations of them, removed from buffers."""

    @property
    def comparisons(self) -> int:
        """Comparisons of attributes, of times and of values."""
        return self.time_tests + self.value_tests
