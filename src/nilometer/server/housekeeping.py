"""What the server does every second by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from nilometer.errors import ClosedError, NilometerError, NotFoundError, in_one_line
from nilometer.server.scopes import SERVER
from nilometer.server.service import Service
from nilometer.server.tokens import Tokens

log = logging.getLogger("nilometer.server")
_EVERY: Final = 1.0


async def keep_house(
    service: Service, tokens: Tokens, *more: Callable[[], Awaitable[object]]
) -> None:
    """Refresh tokens, drop temporary queries without followers, and more, until cancelled."""
    works: Sequence[Callable[[], Awaitable[object]]]
    works = (partial(_look_at_tokens, service, tokens), partial(drop_lonely, service), *more)
    while True:
        for work in works:
            try:
                await work()
            except NilometerError as error:
                if type(error) is not ClosedError:  # the server is stopping, as already reported
                    log.warning("%s", in_one_line(error))
            except Exception:  # one failure must not end all further work
                log.exception("housekeeping failed")
        await asyncio.sleep(_EVERY)


async def _look_at_tokens(service: Service, tokens: Tokens) -> None:
    await service.look(tokens.refresh)


async def drop_lonely(service: Service) -> list[str]:
    """Drop the temporary queries without followers for as long as the settings allow."""
    temporary = {one.name for one in await service.queries.all() if one.is_temporary}
    lonely = service.followers.lonely(temporary, service.settings.temporary_after)
    for name in lonely:
        with suppress(NotFoundError):  # it was already dropped
            await service.queries.drop(name, SERVER)
    return sorted(lonely)
