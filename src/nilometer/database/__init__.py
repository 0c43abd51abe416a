"""The facade that Python, the command line and the server share."""

from nilometer.database.database import OUTCOME, Database, connect

__all__ = ["OUTCOME", "Database", "connect"]
