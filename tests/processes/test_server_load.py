"""A server with many clients: they meet nothing but the documented limits."""

from __future__ import annotations

import pytest

from benchmarks.server_load import run


@pytest.mark.soak
@pytest.mark.limit(600)
def test_many_clients_meet_no_error() -> None:
    seen = run(60)
    assert not seen.errors
    assert not seen.said
    assert not seen.silent
    assert {name for name in seen.answers if name.startswith("LIST")} == {"LIST 200"}
    assert seen.answers["CREATE 201"] == seen.answers["DROP 204"] > 20
    settled = seen.memory[len(seen.memory) // 4]
    assert max(seen.memory) < 1.5 * settled
