"""What Spark starts as Python: requests the process from the fork server, and ends with it.

It runs without site-packages, so that it starts at once, and must not import any.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main(address: str, python: str, *arguments: str) -> int:
    """The exit code of a process with these arguments, forked by the server if it is running."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            if arguments[:1] != ("-m",):
                raise OSError("only modules are forked")
            server.connect(address)
        except OSError:
            os.execv(python, [python, *arguments])
        body = json.dumps(
            {
                "arguments": arguments,
                "environment": dict(os.environ),
                "folder": os.getcwd(),
                "niceness": os.getpriority(os.PRIO_PROCESS, 0),
            }
        ).encode()
        socket.send_fds(server, [len(body).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(body)
        for file in (0, 1):
            os.close(file)
        ended = server.recv(1)
    return ended[0] if ended else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
