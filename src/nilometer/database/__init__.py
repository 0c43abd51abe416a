"""The facade that Python, the command line and the server share."""

from nilometer.extras import require_extras

require_extras("this", "spark")

from nilometer.database.database import OUTCOME, Database
from nilometer.database.open_database import connect

__all__ = ["OUTCOME", "Database", "connect"]
