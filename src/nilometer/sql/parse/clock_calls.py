"""Calls that ask what time or what day it is."""

from __future__ import annotations

from sqlglot import exp


def is_clock_call(node: exp.Expr) -> bool:
    """Whether a node is now(), current_timestamp, current_date or curdate()."""
    is_now = isinstance(node, exp.Anonymous) and node.name.lower() == "now"
    return is_now or isinstance(node, exp.CurrentTimestamp | exp.CurrentDate)
