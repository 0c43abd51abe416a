"""The only part that knows PySpark: how a stage runs on it, and what a user calls."""
