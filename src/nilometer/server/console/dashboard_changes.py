"""Changes that a user makes on a dashboard's page: each is stored at once, or refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from nilometer.errors import InputError
from nilometer.model.dashboard import Dashboard, Panel
from nilometer.server.console.access import Console
from nilometer.server.dashboards.suggest import suggested_panels


class DashboardChanges:
    """Every change applies to what the page shows; if the stored version differs, it is refused."""

    def __init__(
        self,
        console: Console,
        current: Callable[[], Dashboard],
        changed: Callable[[Dashboard], Awaitable[None]],
    ) -> None:
        """`current` gives the dashboard as shown; `changed` shows it again."""
        self._console = console
        self._visitor = console.visitor()
        self._current = current
        self._changed = changed

    async def add(self, panel: Panel) -> None:
        """Add a panel at the end."""
        await self._put([*self._current().panels, panel])

    async def suggest(self) -> None:
        """Add suggested panels."""
        panels = await suggested_panels(self._console.service)
        if not panels:
            raise InputError(
                "there is nothing to show yet", hint="declare a stream, or make a query first"
            )
        await self._put([*self._current().panels, *panels])

    async def change(self, place: int, panel: Panel) -> None:
        """Replace a panel."""
        panels = list(self._current().panels)
        panels[place] = panel
        await self._put(panels)

    async def move(self, place: int, by: int) -> None:
        """Move a panel towards the front or the end."""
        panels = list(self._current().panels)
        to = min(max(0, place + by), len(panels) - 1)
        panels.insert(to, panels.pop(place))
        await self._put(panels)

    async def copy(self, place: int) -> None:
        """Insert a copy of a panel after it."""
        panels = list(self._current().panels)
        panels.insert(place + 1, panels[place])
        await self._put(panels)

    async def remove(self, place: int) -> None:
        """Remove a panel."""
        panels = list(self._current().panels)
        del panels[place]
        await self._put(panels)

    async def retitle(self, title: str) -> None:
        """Change the title."""
        await self._keep(replace(self._current(), title=title.strip()))

    async def _put(self, panels: Sequence[Panel]) -> None:
        await self._keep(replace(self._current(), panels=tuple(panels)))

    async def _keep(self, wanted: Dashboard) -> None:
        stored = await self._console.service.dashboards.put(
            wanted, self._visitor.asker, expected=self._current().version
        )
        await self._changed(stored)
