"""Statements of the database: what they declare, and how they are read."""
