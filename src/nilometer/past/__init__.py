"""Queries over stored data: streams and results of queries as tables of the past."""
