"""Alerts: what is to be told when rows of a stream or the answer of a query say so."""
