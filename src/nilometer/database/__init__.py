"""The facade that Python, the command line and the server share."""

from nilometer.database.database import Database, connect

__all__ = ["Database", "connect"]
