"""The stream manager: polls streams in turn, and fills the queues of scans (STEAM section 5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from nilometer.errors import InputError
from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.steam.source import Source, Status
from nilometer_papers.algorithms.steam.streams_queue import MemoryQueue, StreamsQueue
from nilometer_papers.algorithms.stream_tuple import StreamTuple


@dataclass(eq=False)
class StreamRequest:
    """A stream that is read, and the queues that want its tuples (STEAM section 5.2, scheme 1)."""

    source: Source
    queues: list[StreamsQueue] = field(default_factory=list)
    newest: int = EARLIEST


class StreamManager:
    """Reads registered streams, each once no matter how many queues want it.

    In STEAM a thread polls all the time; here `poll` is called whenever the executor has control,
    so that runs are repeatable.
    """

    def __init__(self, make_queue: Callable[[], StreamsQueue] = MemoryQueue) -> None:
        self._make_queue = make_queue
        self._requests: deque[StreamRequest] = deque()
        """CurrStreamsQueue: the streams to poll, the next one first."""

    @property
    def streams(self) -> int:
        """How many streams are being read."""
        return len(self._requests)

    def create_streams_queue(self) -> StreamsQueue:
        """A queue for a scan."""
        return self._make_queue()

    def register(self, source: Source, queue: StreamsQueue) -> None:
        """Attach a stream to a queue; one that is already being read is not started again."""
        request = next((one for one in self._requests if one.source is source), None)
        if request is None:
            source.init_stream()
            request = StreamRequest(source)
            self._requests.append(request)
        request.queues.append(queue)
        queue.attached += 1

    def unregister(self, queue: StreamsQueue) -> None:
        """Detach all streams of a queue; those that no queue wants any longer are closed."""
        for request in list(self._requests):
            if queue in request.queues:
                request.queues.remove(queue)
                queue.attached -= 1
                if not request.queues:
                    self._end(request)
        queue.flush()

    def poll(self) -> int:
        """Ask every stream once, in turn; returns how many had a tuple."""
        came = 0
        for _ in range(len(self._requests)):
            request = self._requests[0]
            self._requests.rotate(-1)
            reading = request.source.read_stream()
            if reading.status is Status.END:
                self._end(request)
            elif reading.value is not None:
                self._deliver(request, reading.value)
                came += 1
        return came

    def _deliver(self, request: StreamRequest, one: StreamTuple) -> None:
        if one.time < request.newest:
            raise InputError(
                f"a tuple of stream {one.stream} is older than the one before it",
                detail=f"{one.time} came after {request.newest}",
                hint="the tuples of one stream come in the order of time",
            )
        request.newest = one.time
        for queue in request.queues:
            queue.put(one)

    def _end(self, request: StreamRequest) -> None:
        request.source.close_stream()
        self._requests.remove(request)
        for queue in request.queues:
            queue.attached -= 1
