"""Commands that installed packages add; none of these is imported before it is used."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from nilometer.errors import InputError
from nilometer.extras import papers_needed
from nilometer.model.installed import installed, load_installed

ENTRY_POINTS: Final = "nilometer.commands"
"""Each entry names a `typer.Typer`."""
_OF_PAPERS: Final = frozenset({"experiments"})


class WithInstalled(TyperGroup):
    """Nilometer's commands, whose names are reserved, and those of installed packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order in which help lists them."""
        own = super().list_commands(ctx)
        return [*own, *sorted(installed(ENTRY_POINTS, taken=own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or None."""
        own = super().get_command(ctx, cmd_name)
        return _installed_command(cmd_name) if own is None else own


def _installed_command(name: str) -> Any:
    entry = installed(ENTRY_POINTS).get(name)
    if entry is not None:
        command = load_installed(entry, "command")
        if not isinstance(command, typer.Typer):
            raise InputError(
                f"command {name} is not a command", detail=entry.value, hint="name a typer.Typer"
            )
        return get_command(command)
    if name in _OF_PAPERS:
        raise papers_needed(f"nilometer {name}")
    return None
