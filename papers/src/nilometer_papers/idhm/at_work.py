"""The running belt and detectors: a separate process that uses HTTP and MQTT.

python -m nilometer_papers.idhm.at_work SETTINGS prints the port it listens on, waits for a line,
prints when it has begun (microseconds), and works until its input ends. SETTINGS is a JSON object:

detectors  their kinds by their names
burst, live, max_bursts  seconds a burst takes, seconds of exposure in it, and how many at most
secret     what recommendations are signed with
broker     the port of an MQTT broker, or null
by_mqtt    the names of the detectors that publish there, instead of being asked

GET /NAME is the pull interface of a detector (Get_Next): the bursts since it was last asked; GET
/belt are the moves of boxes. POST /recommendations takes signed rows with a box and a verdict.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, ClassVar, Final

from nilometer_papers.idhm.belt import SECOND, BeltSettings
from nilometer_papers.idhm.signed import is_genuine
from nilometer_papers.idhm.site import Site, SiteSettings

TOPIC: Final = "detectors/{}/bursts"
RECOMMENDATIONS: Final = "recommendations"
_PUBLISH_EVERY: Final = 0.1
_LARGEST: Final = 1 << 20


class Interface(BaseHTTPRequestHandler):
    """The site's HTTP interface."""

    protocol_version = "HTTP/1.1"
    site: ClassVar[Site]
    secret: ClassVar[str]

    def do_GET(self) -> None:
        """Return the news of a detector or of the belt."""
        news = self.site.news(self.path.strip("/"), _now())
        self._answer(404 if news is None else 200, b"[%b]" % b",".join(news or []))

    def do_POST(self) -> None:
        """Receive recommendations."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), _LARGEST))
        if self.path.strip("/") != RECOMMENDATIONS:
            self._answer(404)
        elif not is_genuine(self.secret, self.headers, body, time.time()):
            self._answer(401)
        else:
            self.site.recommend(json.loads(body)["rows"], _now())
            self._answer(200)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class SiteServer(ThreadingHTTPServer):
    """Ignores clients that disconnect in the middle of an answer."""

    daemon_threads = True

    def handle_error(self, *request: Any) -> None:
        """Report an error, unless a connection was lost."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*request)


def publish(site: Site, names: Sequence[str], port: int, stopped: Event) -> None:
    """Publish the news of detectors to a broker, ten times a second, until stopped."""
    from paho.mqtt.client import Client  # noqa: PLC0415  only where there is a broker
    from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415

    client = Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    while not stopped.wait(_PUBLISH_EVERY):
        for name in names:
            for message in site.news(name, _now()) or []:
                client.publish(TOPIC.format(name), message, qos=1)
    client.loop_stop()


def work(settings: Mapping[str, Any]) -> None:
    """Wait for the start signal, and run the site until the input ends."""
    pace = BeltSettings(round(settings["burst"] * SECOND), settings["max_bursts"])
    site = Site(SiteSettings(settings["detectors"], pace, settings["live"]))
    handler = type("Bound", (Interface,), {"site": site, "secret": settings["secret"]})
    server = SiteServer(("127.0.0.1", 0), handler)
    stopped = Event()
    working = [Thread(target=server.serve_forever)]
    if settings["broker"] is not None:
        arguments = (site, settings["by_mqtt"], settings["broker"], stopped)
        working.append(Thread(target=publish, args=arguments))
    for thread in working:
        thread.start()
    _say(server.server_address[1])
    sys.stdin.readline()
    started = _now()
    site.begin(started)
    _say(started)
    sys.stdin.read()
    stopped.set()
    server.shutdown()
    for thread in working:
        thread.join()


def _now() -> int:
    return time.time_ns() // 1000


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
