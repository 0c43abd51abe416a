"""A server that is told to stop more than once."""

from __future__ import annotations

import signal

import uvicorn

from nilometer.server.orderly_server import OrderlyServer


async def app(scope: object, receive: object, send: object) -> None:
    """Answers nothing."""


def test_a_signal_within_another_does_not_cut_clients_short() -> None:
    """Python takes SIGINT before SIGTERM, whichever came first, and one within the other."""
    calls = []

    def stopping() -> None:
        calls.append(True)
        server.handle_exit(signal.SIGTERM, None)

    server = OrderlyServer(uvicorn.Config(app, log_config=None), stopping)
    server.handle_exit(signal.SIGINT, None)
    server.handle_exit(signal.SIGINT, None)
    assert (calls, server.should_exit, server.force_exit) == ([True], True, False)


def test_a_signal_to_a_server_that_ends_by_itself_does_not_cut_clients_short() -> None:
    server = OrderlyServer(uvicorn.Config(app, log_config=None), lambda: None)
    server.should_exit = True
    server.handle_exit(signal.SIGINT, None)
    assert not server.force_exit
