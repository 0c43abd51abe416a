"""The dashboards of a database."""

from __future__ import annotations

from dataclasses import dataclass

from nilometer.model.dashboard import Dashboard
from nilometer.sensors.catalog.catalog import SensorCatalog


@dataclass(frozen=True)
class Dashboards:
    """Dashboards by name, in any case."""

    catalog: SensorCatalog

    def all(self) -> list[Dashboard]:
        """All of them, by name."""
        return self.catalog.dashboards()

    def find(self, name: str) -> Dashboard:
        """The one of this name; NotFoundError if there is none."""
        return self.catalog.dashboard(name)

    def put(self, dashboard: Dashboard, *, expected: int | None = None) -> Dashboard:
        """Keep a dashboard in the place of what has its name, and return it as it is kept.

        expected  the version that is replaced, 0: none; ChangedError if it is another one.
        """
        return self.catalog.put_dashboard(dashboard, expected=expected)

    def remove(self, name: str) -> None:
        """Forget a dashboard."""
        self.catalog.remove_dashboard(name)
