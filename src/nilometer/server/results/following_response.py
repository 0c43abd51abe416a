"""A response that continues for as long as its client listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PATIENCE: Final = 300.0
"""A client that reads nothing for this many seconds is disconnected."""

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class FollowingResponse(Response):
    """Sends pieces as fast as the client reads them, and requests none earlier.

    When the client disconnects, the pieces are closed at once; `release` is always called.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        media_type: str,
        release: Callable[[], None],
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(media_type=media_type, headers=_HEADERS)
        del self.headers["content-length"]
        self._pieces = pieces
        self._release = release
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send_all(send))
        listening = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({sending, listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (sending, listening):
                one.cancel()
            await asyncio.wait({sending, listening})
            await self._pieces.aclose()
            self._release()
        if not sending.cancelled():
            with suppress(TimeoutError):  # the connection is closed
                sending.result()

    async def _send_all(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async for piece in self._pieces:
            # It returns once the client has read most of what was sent before.
            async with asyncio.timeout(self._patience):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
