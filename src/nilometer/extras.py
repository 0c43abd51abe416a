"""The packages of each extra, and the one way to report that they are missing."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from nilometer.errors import InstallationError

_CLIENT: Final = ("httpx",)
_SPARK: Final = ("pyspark",)
_DELIVERIES: Final = ("httpx", "paho")

PACKAGES: Final = MappingProxyType(
    {
        "client": _CLIENT,
        "deliveries": _DELIVERIES,
        "history": ("duckdb",),
        "kafka": ("confluent_kafka",),
        "mining": ("scipy", "sklearn", "threadpoolctl"),
        "postgres": ("psycopg",),
        "server": (
            *_DELIVERIES,
            *_SPARK,
            "duckdb",
            "fastapi",
            "nicegui",
            "prometheus_client",
            "prompt_toolkit",
            "uvicorn",
        ),
        "shell": (*_CLIENT, "prompt_toolkit"),
        "spark": _SPARK,
    }
)
"""The packages that an extra needs, by their import names."""


def require_extras(what: str, *extras: str) -> None:
    """Refuse a feature whose extras are not installed, in one line that says which."""
    missing = {extra: _missing(PACKAGES[extra]) for extra in extras}
    _refuse(what, {extra: packages for extra, packages in missing.items() if packages})


def require_packages(what: str, extra: str, packages: Iterable[str]) -> None:
    """Refuse a feature that needs only these packages of an extra, if one is not installed.

    >>> require_packages("MATCHES", "mining", ["not_there"])
    Traceback (most recent call last):
    nilometer.errors.InstallationError: MATCHES needs not_there: pip install 'nilometer[mining]'
    """
    if missing := _missing(packages):
        _refuse(what, {extra: missing})


def require_package(what: str, package: str) -> None:
    """Refuse a feature that needs a package outside all extras, if it is not installed.

    >>> require_package("plot()", "not_there")
    Traceback (most recent call last):
    nilometer.errors.InstallationError: plot() needs not_there: pip install not_there
    """
    if _missing([package]):
        raise InstallationError(f"{what} needs {package}: pip install {package}")


def papers_needed(what: str) -> InstallationError:
    """The error for a feature that only the papers package provides."""
    return InstallationError(f"{what} needs nilometer-papers: pip install nilometer-papers")


def _missing(packages: Iterable[str]) -> list[str]:
    return [package for package in packages if find_spec(package) is None]


def _refuse(what: str, missing: dict[str, list[str]]) -> None:
    if missing:
        packages = sorted({package for some in missing.values() for package in some})
        raise InstallationError(
            f"{what} needs {', '.join(packages)}: "
            f"pip install 'nilometer[{','.join(sorted(missing))}]'"
        )
