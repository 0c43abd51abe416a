"""Notifies systemd of a server's state: ready, alive, stopping (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

_VARIABLE: Final = "NOTIFY_SOCKET"


def notify(*lines: str) -> bool:
    """Send lines such as READY=1 to the service manager; False: there is none.

    Errors are ignored: they must not affect the server.
    """
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)
        sending.sendto("\n".join(lines).encode(), address.replace("@", "\0", 1))
        return True
    return False
