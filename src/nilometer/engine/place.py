"""What a bucket needs of its engine: on this machine, or by way of the driver.

On one machine workers use the engine's folder. On a cluster they have no folder in common with the
driver: what they read and write there goes through a connection to it. The driver's disk decides
which of two workers was first, as it does on one machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from nilometer.engine.at_work import AtWork
from nilometer.engine.bucket_files import BucketFolder
from nilometer.engine.channel import Channel, call
from nilometer.engine.plan_set import PlanFolder, PlanSet, read_plan_set
from nilometer.engine.published import read_published
from nilometer.errors import LogError, SessionError

_TIMEOUT: Final = 120.0
"""How long (seconds) the driver may take to answer; it may be paused."""
_ADDRESS: Final = "served.json"


class WorkRecord(Protocol):
    """Records which query a bucket is working on."""

    def begin(self, query: str) -> None: ...

    def end(self) -> None: ...

    def all_is_well(self) -> None: ...

    def died(self) -> str | None: ...


class EnginePlace(Protocol):
    """The plans of an engine, and the files of its buckets."""

    def plan_set(self) -> PlanSet:
        """The current set."""

    def plan(self, name: str) -> bytes:
        """A stored plan."""

    def files(self, bucket: int) -> BucketFolder:
        """The files of a bucket."""

    def at_work(self, bucket: int) -> WorkRecord:
        """The record of what a bucket is working on."""

    def published(self, bucket: int) -> int:
        """The last file whose results are all durable in their logs; -1: none."""


class LocalPlace:
    """The folder of an engine."""

    def __init__(self, folder: Path) -> None:
        self._plans = PlanFolder(folder)

    def plan_set(self) -> PlanSet:
        return self._plans.read_written()

    def plan(self, name: str) -> bytes:
        return self._plans.plan(name)

    def files(self, bucket: int) -> BucketFolder:
        return self._plans.files(bucket)

    def at_work(self, bucket: int) -> AtWork:
        return AtWork(self._plans.bucket(bucket))

    def published(self, bucket: int) -> int:
        return read_published(self._plans.folder, bucket)


@dataclass(frozen=True)
class ServedAddress:
    """Where the driver serves the folder of an engine, and with which key."""

    host: str
    port: int
    key: bytes = field(repr=False)


def write_address(folder: Path, address: ServedAddress | None) -> None:
    """Note where an engine's folder is served, for the process beside the driver; None: nowhere."""
    path = folder / _ADDRESS
    path.unlink(missing_ok=True)
    if address is not None:
        content = json.dumps([address.host, address.port, address.key.hex()])
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)


def read_address(folder: Path) -> ServedAddress | None:
    """Where an engine's folder is served; None: all workers are on this machine."""
    try:
        host, port, key = json.loads((folder / _ADDRESS).read_bytes())
    except FileNotFoundError:
        return None
    return ServedAddress(host, port, bytes.fromhex(key))


class ServedPlace:
    """The folder of an engine as the driver serves it; used by one thread."""

    def __init__(self, address: ServedAddress) -> None:
        self._address = address
        self._channel: Channel | None = None

    def plan_set(self) -> PlanSet:
        return read_plan_set(self.ask("plan_set")[1])

    def plan(self, name: str) -> bytes:
        return self.ask("plan", name=name)[1]

    def files(self, bucket: int) -> BucketFolder:
        return BucketFolder(_ServedFolder(self, bucket))

    def at_work(self, bucket: int) -> WorkRecord:
        return _ServedWatch(self, bucket)

    def published(self, bucket: int) -> int:
        return int(self.ask("published", bucket=bucket)[0]["published"])

    def ask(
        self, what: str, body: Iterable[bytes] = (), **fields: Any
    ) -> tuple[Mapping[str, Any], bytes]:
        """Ask for something; raises what the driver has raised."""

        def talk(channel: Channel) -> tuple[dict[str, Any], bytes]:
            channel.send({"ask": what, **fields}, list(body))
            answer = channel.receive()
            if answer is None:
                raise ConnectionError("the driver has closed the connection")
            return answer

        head, content = self._talk(talk)
        if "error" in head:
            raise _raised(head)
        return head, content

    def say(self, what: str, **fields: Any) -> None:
        """Say something that is not answered."""
        self._talk(lambda channel: channel.send({"ask": what, **fields}))

    def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __del__(self) -> None:
        self.close()

    def _talk(self, talk: Callable[[Channel], Any]) -> Any:
        address = (self._address.host, self._address.port)
        try:
            if self._channel is None:
                self._channel = call(address, self._address.key, _TIMEOUT)
            return talk(self._channel)
        except OSError as error:
            self.close()
            raise SessionError(
                "the driver, which has the state of queries, does not answer",
                detail=f"{address[0]}:{address[1]}: {error}",
                hint="executors reach it at spark.driver.host; where only some ports are open, "
                'set "spark.nilometer.driver.port" to one of them',
            ) from None
        except BaseException:
            self.close()  # an answer may still come
            raise


def _raised(answer: Mapping[str, Any]) -> Exception:
    """The error that the driver reported."""
    if answer["error"] == "missing":
        return FileNotFoundError(answer["message"])
    if answer["error"] == "system":
        return OSError(answer["number"], answer["message"])
    return LogError(answer["message"], detail=answer["detail"], hint=answer["hint"])


class _ServedFolder:
    """The files of a bucket as the driver serves them."""

    def __init__(self, place: ServedPlace, bucket: int) -> None:
        self._place = place
        self._bucket = bucket

    @property
    def location(self) -> str:
        return f"bucket {self._bucket} of the engine, on the driver"

    def names(self) -> list[str]:
        names: list[str] = self._ask("names")[0]["names"]
        return names

    def has(self, name: str) -> bool:
        return bool(self._ask("has", name=name)[0]["has"])

    def start_of(self, name: str, length: int) -> tuple[bytes, int]:
        answer, content = self._ask("start_of", name=name, length=length)
        return content, int(answer["size"])

    def read(self, name: str, start: int, length: int) -> bytes:
        return self._ask("read", name=name, start=start, length=length)[1]

    def create(self, name: str, chunks: Iterable[bytes]) -> int | None:
        size: int | None = self._ask("create", chunks, name=name)[0]["size"]
        return size

    def add(self, name: str, content: bytes) -> None:
        self._ask("add", [content], name=name)

    def delete(self, names: Iterable[str]) -> None:
        listed = list(names)
        if listed:
            self._ask("delete", names=listed)

    def close(self) -> None:
        """The connection serves all buckets: it stays."""

    def _ask(
        self, what: str, body: Iterable[bytes] = (), **fields: Any
    ) -> tuple[Mapping[str, Any], bytes]:
        return self._place.ask(what, body, bucket=self._bucket, **fields)


class _ServedWatch:
    """Tells the driver what this process works on; it waits for no answer before a query."""

    def __init__(self, place: ServedPlace, bucket: int) -> None:
        self._place = place
        self._bucket = bucket

    def begin(self, query: str) -> None:
        self._place.say("begin", bucket=self._bucket, query=query)

    def end(self) -> None:
        with suppress(SessionError):  # what went wrong before has been reported
            self._place.say("end", bucket=self._bucket)

    def all_is_well(self) -> None:
        self._place.say("all_is_well", bucket=self._bucket)

    def died(self) -> str | None:
        query: str | None = self._place.ask("died", bucket=self._bucket)[0]["query"]
        return query
