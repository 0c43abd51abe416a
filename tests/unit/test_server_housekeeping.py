"""Temporary queries go when nobody follows them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nilometer.server.housekeeping import drop_lonely
from nilometer.server.settings import ServerSettings
from tests.served import served

SELECT = {"statement": "SELECT v FROM S"}


def test_a_temporary_query_that_nobody_follows_is_dropped(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(temporary_after=0)) as server:
        made = server.ask("POST", "/queries", json=SELECT)
        assert made.json()["is_temporary"]
        name = made.json()["name"]
        assert server.ask("POST", "/queries", json={**SELECT, "name": "kept"}).status_code == 201
        with server.service.followers.one(name, "somebody"):
            assert asyncio.run(drop_lonely(server.service)) == []
        assert asyncio.run(drop_lonely(server.service)) == [name]
        assert [one["name"] for one in server.ask("GET", "/queries").json()] == ["kept"]


def test_it_has_its_time_first(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(temporary_after=60)) as server:
        assert server.ask("POST", "/queries", json=SELECT).status_code == 201
        assert asyncio.run(drop_lonely(server.service)) == []
