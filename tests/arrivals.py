"""Generated streams for the papers' algorithms: delays, bursts, equal times, silent streams."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from nilometer.errors import WindowError
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import PairWindow, Window
from nilometer_papers.algorithms.join_task import JoinTask, names
from nilometer_papers.algorithms.registry import Windows
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple
from tests import naive

LARGEST_WINDOW = 8


@dataclass(frozen=True)
class Case:
    """A join, and the tuples of all streams in order of arrival."""

    task: JoinTask
    arrivals: tuple[StreamTuple, ...]

    @property
    def expected(self) -> list[tuple[int, ...]]:
        """The numbers of the tuples of every result, sorted: found by brute force."""
        streams = [[(one.time, one.key, 0, one.number) for one in line] for line in self.streams]
        return naive.window_join(streams, self.task.network)

    @property
    def results(self) -> list[Result]:
        """The expected results as tuples."""
        streams = self.streams
        return [tuple(streams[i][n] for i, n in enumerate(one)) for one in self.expected]

    @property
    def streams(self) -> list[list[StreamTuple]]:
        """The tuples of each stream."""
        streams = range(self.task.streams)
        return [[one for one in self.arrivals if one.stream == i] for i in streams]


def generate(random: Random, windows: Windows) -> Case:
    """A join under windows of one form, and its streams."""
    streams = random.randint(2, 6)
    task = _task(random, windows, streams)
    return Case(task, tuple(arrive(random, streams)))


def arrive(random: Random, streams: int) -> list[StreamTuple]:
    """Tuples in order of arrival; those of one stream come in time order."""
    longest = {2: 30, 3: 20, 4: 14, 5: 10, 6: 8}[streams]
    keys = random.randint(1, 6)
    lines = [_stream(random, i, longest, keys) for i in range(streams)]
    style = random.choice(("in time", "delayed", "any", "one by one"))
    if style == "one by one":
        random.shuffle(lines)
        return [one for line in lines for one in line]
    if style == "any":
        return _interleave(random, lines)
    delays = [random.randint(0, 25) if style == "delayed" else 0 for _ in lines]
    merged = [
        (one.time + delays[one.stream], random.random(), one) for line in lines for one in line
    ]
    if style == "in time":
        return [one for _, _, one in sorted(merged, key=lambda entry: entry[0])]
    ordered = sorted(merged, key=lambda entry: (entry[0], entry[2].stream, entry[2].number))
    return [one for _, _, one in ordered]


def _stream(random: Random, stream: int, longest: int, keys: int) -> list[StreamTuple]:
    """Single tuples, bursts of equal times and pauses; some streams have few tuples or none."""
    length = random.choice((0, 1, longest // 3, longest, longest, longest, longest))
    time, tuples = random.randint(0, 10), []
    for number in range(length):
        tuples.append(StreamTuple(time, random.randrange(keys), stream, number))
        time += random.choice((0, 0, 1, 1, 2, 3, 9))
    return tuples


def _interleave(random: Random, lines: list[list[StreamTuple]]) -> list[StreamTuple]:
    rest, merged = [list(reversed(line)) for line in lines], []
    while any(rest):
        merged.append(random.choice([line for line in rest if line]).pop())
    return merged


def _task(random: Random, windows: Windows, streams: int) -> JoinTask:
    def length() -> int:
        return random.randint(0, LARGEST_WINDOW)

    match windows:
        case Windows.UNIFORM:
            return JoinTask.uniform(streams, length())
        case Windows.PER_STREAM:
            return JoinTask.per_stream([length() for _ in range(streams)])
        case Windows.PATH:
            steps = [PairWindow(a, b, 0, length()) for a, b in _steps(streams)]
            return JoinTask(TimeNetwork(names(streams), tuple(steps)))
        case Windows.ANY:
            return JoinTask(_graph(random, streams))
        case Windows.ROWS:
            return JoinTask.last_rows([random.randint(1, 5) for _ in range(streams)])


def _steps(streams: int) -> list[tuple[str, str]]:
    every = names(streams)
    return list(pairwise(every))


def _graph(random: Random, streams: int) -> TimeNetwork:
    """A path with extra edges; plain, directed and signed windows."""
    every = names(streams)
    while True:
        pairs = _steps(streams)
        pairs += [(a, b) for a in every for b in every if a < b and random.random() < 0.3]
        try:
            return TimeNetwork(every, tuple(_window(random, a, b) for a, b in pairs))
        except WindowError:
            continue


def _window(random: Random, first: str, second: str) -> Window:
    low, high = sorted((random.randint(-LARGEST_WINDOW, 8), random.randint(-LARGEST_WINDOW, 8)))
    length = random.randint(0, LARGEST_WINDOW)
    kind = random.choice(("plain", "plain", "directed", "signed"))
    if kind == "signed":
        return PairWindow(first, second, low, high)
    return PairWindow(first, second, 0 if kind == "directed" else -length, length)
