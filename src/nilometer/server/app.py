"""The web application: the HTTP API and the console on one port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from nilometer.server.console.pages import ConsolePage
from nilometer.server.error_shape import add_error_shape
from nilometer.server.guards import add_guards
from nilometer.server.housekeeping import keep_house
from nilometer.server.routes.alerts import alerts_router
from nilometer.server.routes.api_page import api_page_router
from nilometer.server.routes.backups import backups_router
from nilometer.server.routes.dashboards import dashboards_router
from nilometer.server.routes.deliveries import deliveries_router
from nilometer.server.routes.downloads import downloads_router
from nilometer.server.routes.metrics import metrics_router
from nilometer.server.routes.probes import probes_router
from nilometer.server.routes.queries import queries_router
from nilometer.server.routes.results import results_router
from nilometer.server.routes.statements import statements_router
from nilometer.server.routes.streams import streams_router
from nilometer.server.routes.tokens import tokens_router
from nilometer.server.routes.trials import trials_router
from nilometer.server.service import Service
from nilometer.server.sessions import Sessions
from nilometer.server.tokens import Tokens
from nilometer.version import VERSION


def make_app(
    service: Service,
    tokens: Tokens,
    sessions: Sessions | None = None,
    pages: tuple[ConsolePage, ...] = (),
    every_second: Callable[[], None] = lambda: None,
) -> FastAPI:
    """The application that serves the service; the console is included only with sessions.

    `pages` are added by applications. `every_second` is called while the application runs.
    """

    async def more() -> None:
        await service.look(every_second)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        keeping = asyncio.create_task(keep_house(service, tokens, more))
        yield
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping

    app = FastAPI(
        title="Nilometer",
        version=VERSION,
        description="A stream database for sensor data: statements, continuous queries, results.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.service = service
    app.state.tokens = tokens
    add_error_shape(app)
    add_guards(app, service.settings)
    app.include_router(probes_router(service, tokens))
    app.include_router(statements_router(service))
    app.include_router(queries_router(service))
    app.include_router(results_router(service))
    app.include_router(downloads_router(service))
    app.include_router(streams_router(service))
    app.include_router(trials_router(service))
    app.include_router(deliveries_router(service))
    app.include_router(alerts_router(service))
    app.include_router(dashboards_router(service))
    app.include_router(tokens_router(service, tokens))
    app.include_router(backups_router(service))
    app.include_router(metrics_router(service))
    app.include_router(api_page_router())
    if sessions is not None:
        from nilometer.server.console.shell import add_console  # noqa: PLC0415  NiceGUI is large

        add_console(app, service, sessions, tokens, pages)
    return app
