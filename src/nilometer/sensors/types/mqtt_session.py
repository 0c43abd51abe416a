"""How to reach a broker, and under which name: sensors that agree share a connection."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from nilometer.model.reach import Reach


@dataclass(frozen=True)
class Tls:
    """How to verify a broker, and what to present to it."""

    authority: Path | None
    certificate: Path | None
    key: Path | None
    insecure: bool

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


@dataclass(frozen=True)
class Session:
    """A client of a broker; the first sensor that opens it decides how it is kept alive."""

    host: str
    port: int
    reach: Reach
    client: str
    shape: str
    qos: int
    version: int
    user: str | None
    password: str | None
    tls: Tls | None
    keep_alive: int = field(compare=False)
    inflight: int = field(compare=False)
    """How many messages may be in flight to the log."""
    expiry: int = field(compare=False)
    """How many seconds the broker keeps the session while we are disconnected."""
    timeout: float = field(compare=False)
    max_bytes: int = field(compare=False)
