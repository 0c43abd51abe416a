"""Counts of an operator's work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class OperatorCounters:
    """Counts since the start."""

    tuples: int = 0
    """Tuples processed, positive and negative."""
    comparisons: int = 0
    """Timestamps of stored tuples compared with the clock, to find those that expired."""
    lookups: int = 0
    """Look-ups in hash tables by value."""
    probes: int = 0
    """How often it was asked for its time."""
