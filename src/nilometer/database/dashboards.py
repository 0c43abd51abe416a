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
        """All dashboards, ordered by name."""
        return self.catalog.dashboards()

    def find(self, name: str) -> Dashboard:
        """The dashboard of this name; raises NotFoundError if there is none."""
        return self.catalog.dashboard(name)

    def put(self, dashboard: Dashboard, *, expected: int | None = None) -> Dashboard:
        """Store a dashboard, replacing the one of its name, and return it as stored.

        expected  the version to replace, 0 for none; raises ChangedError if it is another.
        """
        return self.catalog.put_dashboard(dashboard, expected=expected)

    def remove(self, name: str) -> None:
        """Delete a dashboard."""
        self.catalog.remove_dashboard(name)
