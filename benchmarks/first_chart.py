"""From `nilometer serve` to a live chart of one's own MQTT sensor, as a newcomer does it.

Run separately: python -m benchmarks.first_chart. A real broker with a sensor that sends ten
readings per second, a server as users start it, a real browser. Every click, field and key is a
step; only machine time is counted, not the time to read and to think.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import paho.mqtt.client as mqtt
from playwright.sync_api import expect, sync_playwright

from tests.browser.visit import Visit
from tests.mosquitto import Mosquitto, start_mosquitto
from tests.server_at_work import server_at_work

EVERY: Final = 0.1


@contextmanager
def sensor(broker: Mosquitto) -> Iterator[None]:
    """Publish readings on the topic shed until the end."""
    over = threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()

    def send() -> None:
        number = 0
        while not over.wait(EVERY):
            number += 1
            client.publish("shed", json.dumps({"temperature": 20 + number % 7}), qos=1)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    over.set()
    thread.join()
    client.loop_stop()


class Stopwatch:
    """Reports the time of each part, and the number of steps."""

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()
        self._steps = 0

    def tell(self, what: str, steps: int) -> None:
        now = time.monotonic()
        self._steps += steps
        print(f"{now - self._last:6.1f} s  {steps:2} steps  {what}", flush=True)
        self._last = now

    def sum_up(self) -> None:
        print(f"{self._last - self._begun:6.1f} s  {self._steps:2} steps  in all")


def run() -> None:
    """Run all parts, and report how long they took."""
    chromium = shutil.which("chromium")
    assert chromium, "install Chromium first"
    with (
        tempfile.TemporaryDirectory(prefix="nilometer-first-") as folder,
        start_mosquitto(Path(folder, "broker")) as broker,
        sensor(broker),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        watch = Stopwatch()
        with server_at_work(Path(folder, "plant"), env={"JAVA_TOOL_OPTIONS": ""}) as server:
            watch.tell("nilometer serve: ready", 1)
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            at = Visit(server.url, context, context.new_page())
            at.page.goto(server.login_link)
            at.open("/console/sensors")
            watch.tell("the link opened, the page of sensors", 2)
            at.button("Add a stream").click()
            dialog = at.page.get_by_role("dialog")
            dialog.get_by_label("Name", exact=True).fill("Shed")
            dialog.get_by_label("Type", exact=True).click()
            at.page.get_by_role("option", name="mqtt").click()
            address = f"mqtt://127.0.0.1:{broker.port}/shed"
            dialog.get_by_label("Address", exact=True).fill(address)
            at.button("Try a reading").click()
            expect(dialog.locator(".nm-extra .nm-sheet")).to_contain_text("2")
            watch.tell("the form filled in, a reading tried", 6)
            at.button("Create it").click()
            expect(at.page.get_by_text("created stream Shed")).to_be_visible()
            watch.tell("the stream created", 1)
            at.open("/")
            at.write("SELECT * FROM Shed")
            at.button("Run").click()
            at.wait_for_points()
            watch.tell("a SELECT written and run: the first point of its chart", 3)
            newest = at.newest_point()
            at.wait_for_points(newest)
            watch.tell("the chart moves", 0)
            watch.sum_up()
            at.photograph("first-chart-light-1400")
        browser.close()


if __name__ == "__main__":
    run()
