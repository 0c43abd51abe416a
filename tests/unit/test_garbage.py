"""Garbage is collected in every process that stays."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nilometer import cli
from nilometer.garbage import collect_as_usual, collect_seldom
from nilometer.server import serve
from nilometer.server.config import ServerConfig
from nilometer.server.serve import DatabasePlace, run_server


class Cycle:
    """Something that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def is_freed(after: int) -> bool:
    """Whether so many new objects are enough; whoever looks at it too often keeps it alive."""
    reference = weakref.ref(Cycle())
    objects = []
    for number in range(after):
        objects.append([number])
        if number % 1000 == 999 and reference() is None:
            return True
    return False


def test_it_is_never_off(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(cli, "app", lambda: seen.append(gc.isenabled()))
    cli.main()
    assert seen == [True]
    collect_seldom()
    assert not is_freed(10_000)
    assert is_freed(1_000_000)
    collect_as_usual()
    assert is_freed(10_000)


def test_a_server_collects_as_usual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class EndedError(Exception):
        """Far enough."""

    def end(_: object) -> None:
        raise EndedError

    collect_seldom()
    monkeypatch.setattr(serve, "require_safe", end)
    nothing: Any = None
    with pytest.raises(EndedError):
        run_server(
            DatabasePlace(tmp_path, None, None), ServerConfig(), print, spark=nothing, log=nothing
        )
    assert gc.isenabled()
    assert is_freed(10_000)
