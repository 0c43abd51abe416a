"""Alerts: notifications sent when rows of a stream, or the answer of a query, meet a condition."""
