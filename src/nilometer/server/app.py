"""The web application: the HTTP API and the console on one port."""

from __future__ import annotations

from fastapi import FastAPI

from nilometer.server.service import Service
from nilometer.version import VERSION


def make_app(service: Service) -> FastAPI:
    """Everything that is served, over this service."""
    app = FastAPI(title="Nilometer", version=VERSION)
    app.state.service = service
    return app
