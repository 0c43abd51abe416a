"""Whether the installed Spark is new enough: it may be one that a cluster brought."""

from __future__ import annotations

from typing import Final

from pyspark import version

from nilometer.errors import InstallationError

_OLDEST: Final = 4
"""The first major version with transformWithState in Python, which hosts all operators."""


def check_spark() -> None:
    """Refuse a Spark that has not what everything here is built on."""
    if int(version.__version__.split(".")[0]) < _OLDEST:
        raise InstallationError(
            f"Spark {version.__version__} is too old: Nilometer needs Spark {_OLDEST} or later",
            hint="pip install 'nilometer[spark]', or use a newer cluster",
        )
