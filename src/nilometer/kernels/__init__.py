"""Functions over numpy and Arrow columns, without state and without an engine."""
