"""Examples in docstrings run by themselves, except those that need something to be there first."""

from __future__ import annotations

collect_ignore = [
    "nilometer/database/database.py",  # tests/spark/test_docstrings.py runs them
    "nilometer/local/embedded.py",  # tests/unit/test_embedded.py
]
