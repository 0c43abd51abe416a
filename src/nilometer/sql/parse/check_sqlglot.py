"""Whether the installed sqlglot can be trusted: a wrong tree would be a wrong answer."""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp

from nilometer.errors import InstallationError

_PROBE: Final = "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3"


def check_sqlglot() -> None:
    """Refuse a sqlglot for which INTERSECT does not bind more closely than UNION."""
    if not isinstance(sqlglot.parse_one(_PROBE, read="spark"), exp.Union):
        from importlib.metadata import version  # noqa: PLC0415  takes its time to load

        raise InstallationError(
            f"sqlglot {version('sqlglot')} cannot be used: it misreads A UNION B INTERSECT C",
            hint="pip install 'sqlglot>=30.26,<31'",
        )
