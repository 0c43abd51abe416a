"""One delivery: a thread that hands over chunk after chunk, and retries forever."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nilometer.deliveries.reading import Progress, Reading, read_progress
from nilometer.deliveries.status import DeliveryState
from nilometer.deliveries.unit import ChunkSize, DeliveryUnit, ReceiverError, ReceiverGoneError
from nilometer.errors import in_one_line
from nilometer.log.clock import now_micros
from nilometer.model.events import event
from nilometer.model.secrets import shown_text

_LOG: Final = logging.getLogger("nilometer.deliveries")
_SHOWN: Final = 300


@dataclass(frozen=True)
class DeliverySettings:
    """Settings of a delivery, in seconds."""

    look_every: float = 0.2
    """How often it looks for new results."""
    first_wait: float = 1.0
    """Wait before the second attempt; doubled for each further one."""
    longest_wait: float = 300.0
    stop_within: float = 5.0
    """How long an attempt may continue after it was asked to stop."""


_DEFAULTS: Final = DeliverySettings()


class Delivery:
    """Delivers the results of a query while it runs; a slow receiver delays no other delivery."""

    def __init__(
        self,
        name: str,
        query: str,
        location: str,
        size: ChunkSize,
        make_unit: Callable[[], DeliveryUnit],
        failed: Callable[[str], None],
        *,
        settings: DeliverySettings = _DEFAULTS,
        clock: Callable[[], int] = now_micros,
    ) -> None:
        """`failed` receives the reason if the delivery fails for good, in its own thread."""
        self.name = name
        self.query = query
        self.state = DeliveryState.RUNNING
        self.last_error: str | None = None
        self.next_try: int | None = None
        self.retries = 0
        """How many attempts have failed."""
        self._location = location
        self._size = size
        self._make_unit = make_unit
        self._failed = failed
        self._settings = settings
        self._clock = clock
        self._wait = settings.first_wait
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._committing = threading.Lock()
        self._is_abandoned = False
        self._stop_by = math.inf
        self._thread = threading.Thread(target=self._run, name=f"delivery {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def hurry(self) -> None:
        """Make the next attempt immediately."""
        self._wake.set()

    def ask_to_stop(self) -> None:
        """Ask it to end as soon as it can."""
        self._stop_by = min(self._stop_by, time.monotonic() + self._settings.stop_within)
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        """End; what a receiver has not accepted by then will be delivered again."""
        self.ask_to_stop()
        self._thread.join(max(0.0, self._stop_by - time.monotonic()))
        with self._committing:  # if the thread is still running, it must not commit any more
            self._is_abandoned = True

    @property
    def progress(self) -> Progress | None:
        """Its progress."""
        return read_progress(self._location, self.name)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._deliver_all()
            except ReceiverGoneError as error:
                self._give_up(error)
                return
            except Exception as error:  # a unit, and a disk, may fail in any way
                self._pause(error)

    def _deliver_all(self) -> None:
        """Deliver until stopped, or until something fails."""
        reading = Reading(self._location, self.name, self.query, self._size, self._clock)
        try:
            unit = self._make_unit()
            try:
                while not self._stopping.is_set():
                    self._deliver_next(reading, unit)
            finally:
                unit.close()
        finally:
            with self._committing:
                if not self._is_abandoned:
                    reading.release()

    def _deliver_next(self, reading: Reading, unit: DeliveryUnit) -> None:
        chunk = reading.next_chunk(getattr(unit, "row_bytes", None))
        if chunk is None:
            if not reading.behind:
                self._is_well()
            self._wake.wait(self._settings.look_every)
            self._wake.clear()
            return
        unit.deliver(chunk)
        with self._committing:
            if not self._is_abandoned:
                reading.delivered()
        self._is_well()

    def _is_well(self) -> None:
        if self.state is DeliveryState.RETRYING:
            extra = event("delivery_recovered", self.name, **self._about)
            _LOG.info("delivery %s has recovered", self.name, extra=extra)
        self.state, self.last_error, self.next_try = DeliveryState.RUNNING, None, None
        self._wait = self._settings.first_wait

    def _pause(self, error: Exception) -> None:
        """Wait for the next attempt, longer each time."""
        if self._stopping.is_set():
            return
        after = error.after if isinstance(error, ReceiverError) else 0.0
        # Deliveries that fail together must not all retry at the same instant.
        seconds = max(after, self._wait * random.uniform(0.5, 1.0))
        self._wait = min(self._wait * 2, self._settings.longest_wait)
        self.last_error = _reason(error)
        self.retries += 1
        self._tell_retry(seconds)
        self.next_try = self._clock() + int(seconds * 1e6)
        self.state = DeliveryState.RETRYING
        self._wake.wait(seconds)
        self._wake.clear()

    @property
    def _about(self) -> dict[str, str]:
        return {"delivery": self.name, "query": self.query}

    def _tell_retry(self, seconds: float) -> None:
        """Log every retry, but only the first as a warning."""
        is_first = self.state is not DeliveryState.RETRYING
        fields = {**self._about, "reason": self.last_error, "seconds": seconds}
        words = "delivery %s failed and will be retried in %.1f s: %s"
        extra = event("delivery_retries", self.name, **fields)
        level = logging.WARNING if is_first else logging.INFO
        _LOG.log(level, words, self.name, seconds, self.last_error, extra=extra)

    def _give_up(self, error: ReceiverGoneError) -> None:
        self.last_error, self.next_try = _reason(error), None
        self.state = DeliveryState.FAILED
        extra = event("delivery_failed", self.name, **self._about, reason=self.last_error)
        words = "delivery %s failed permanently: %s"
        _LOG.error(words, self.name, self.last_error, extra=extra)
        with self._committing:
            if not self._is_abandoned:
                self._failed(self.last_error)


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, ReceiverError) else in_one_line(error)
    return shown_text(text)[:_SHOWN]
