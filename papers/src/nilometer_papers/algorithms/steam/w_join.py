"""W-join as a plan operator: GetNext as in TR-010 Figure 5."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from nilometer.model.time import EARLIEST
from nilometer_papers.algorithms.conditions import Condition, SameKey
from nilometer_papers.algorithms.counters import Counters
from nilometer_papers.algorithms.m_tuple import MTuple, with_all_times
from nilometer_papers.algorithms.steam.plan_operator import END, End, PlanOperator, Pulled

LEFT, RIGHT = 0, 1


class Release(Enum):
    """When a join without output returns control: the papers give both."""

    BLOCKED = "both inputs are empty"
    """STEAM section 6.1, and the comment in Figure 5."""
    BOTH_PROCESSED = "both inputs had a turn"
    """TR-010 section 3.1.1: so that higher joins get to process their streams."""


@dataclass(frozen=True)
class WJoinSpec:
    """What is joined, and how."""

    window: int
    condition: Condition = field(default_factory=SameKey)
    buckets: int = 1
    """In each hash table: HW-join. With a single bucket it is NLW-join."""
    release: Release = Release.BLOCKED


class StreamBuffer:
    """The tuples of one input that are not out yet, in a fixed number of buckets."""

    def __init__(self, buckets: int) -> None:
        self.buckets: list[list[MTuple]] = [[] for _ in range(buckets)]
        self.visited: OrderedDict[int, int] = OrderedDict.fromkeys(range(buckets), EARLIEST)
        """The oldest tuple needed when each bucket was last visited, least recent visit first."""

    def place_of(self, one: MTuple) -> int:
        """The bucket of the tuples that can join this one."""
        return hash(one.key) % len(self.buckets) if len(self.buckets) > 1 else 0

    def add(self, one: MTuple) -> None:
        """Add a tuple."""
        self.buckets[self.place_of(one)].append(one)

    def __iter__(self) -> Iterator[MTuple]:
        return (one for bucket in self.buckets for one in bucket)


class WJoin(PlanOperator):
    """A binary W-join; combinations come from the left, tuples of one stream from the right.

    Every tuple visited is tested by IsOut, and deleted or compared. As errata.md says,
    a tuple is out if it is *older* by more than the window than all of V; V has what has arrived
    from each source, not only what came up; and a buffer is also tidied when something is added.
    """

    def __init__(
        self,
        left: PlanOperator,
        right: PlanOperator,
        spec: WJoinSpec,
        counters: Counters | None = None,
    ) -> None:
        super().__init__(left, right)
        self.buffers = StreamBuffer(spec.buckets), StreamBuffer(spec.buckets)
        self._spec = spec
        self._counters = counters if counters is not None else Counters()
        self._turn_on_stream = LEFT
        self._ended = [False, False]
        self._output: deque[MTuple] = deque()
        """CurrentJoinOutput."""

    @property
    def newest(self) -> Sequence[int]:
        left, right = self.children
        return (*left.newest, *right.newest)

    def pull(self) -> Pulled:
        if self._output:
            return self._output.popleft()
        empty = turns = 0
        while True:
            pulled = self._retrieve()
            turns += 1
            empty = empty + 1 if pulled is None else 0
            if pulled is not None:
                self._process(pulled, self._turn_on_stream)
            self._turn_on_stream = 1 - self._turn_on_stream
            if self._output:
                return self._output.popleft()
            if all(self._ended):
                return END
            if empty >= 2 or (self._spec.release is Release.BOTH_PROCESSED and turns >= 2):
                return None

    def sweep(self) -> None:
        """Remove everything that is out."""
        for side, buffer in enumerate(self.buffers):
            for place in range(len(buffer.buckets)):
                self._visit(side, place)

    def _retrieve(self) -> MTuple | None:
        side = self._turn_on_stream
        if self._ended[side]:
            return None
        pulled = self.children[side].get_next()
        if isinstance(pulled, End):
            self._ended[side] = True
            return None
        return pulled

    def _process(self, new: MTuple, side: int) -> None:
        """Handle a tuple as Figure 5 does: insert it, and visit the other buffer for it."""
        own, other = self.buffers[side], self.buffers[1 - side]
        own.add(new)
        self._tidy(side, own.place_of(new))
        if len(other.buckets) > 1:
            self._counters.probes += 1
        low, high = new.last - self._spec.window, new.time + self._spec.window
        remaining = self._visit(1 - side, other.place_of(new))
        self._counters.time_tests += 2 * len(remaining)
        inside = [one for one in remaining if low <= one.time and one.last <= high]
        self._counters.value_tests += len(inside)
        condition = self._spec.condition
        if side == LEFT:
            matches = condition.among(new.members, [one.members[0] for one in inside])
            self._output.extend(with_all_times(new, one) for one in matches)
        else:
            (right,) = new.members
            joined = condition.combinations(right, inside)
            self._output.extend(with_all_times(one, right) for one in joined)

    def _visit(self, side: int, place: int) -> list[MTuple]:
        """The tuples of a bucket that are not out; the others are deleted."""
        bucket, vector = self.buffers[side].buckets[place], self.children[1 - side].newest
        self.buffers[side].visited[place] = min(vector) - self._spec.window
        self.buffers[side].visited.move_to_end(place)
        remaining = [one for one in bucket if not self._is_out(one, vector)]
        if len(remaining) < len(bucket):
            self._counters.removed += len(bucket) - len(remaining)
            self.buffers[side].buckets[place] = remaining
        return remaining

    def _tidy(self, side: int, place: int) -> None:
        """Delete what is out at the head of a bucket, and in buckets not visited for a long time.

        The routine of section 3.1.2 updates buckets that were not visited while what is needed
        moved on by more than the window.
        """
        bucket, vector = self.buffers[side].buckets[place], self.children[1 - side].newest
        out = 0
        while out < len(bucket) and self._is_out(bucket[out], vector):
            out += 1
        del bucket[:out]
        self._counters.removed += out
        visited, long_ago = self.buffers[side].visited, min(vector) - 2 * self._spec.window
        while visited[first := next(iter(visited))] < long_ago:
            self._visit(side, first)

    def _is_out(self, one: MTuple, vector: Sequence[int]) -> bool:
        """IsOut(t, V, w): whether it is older by more than the window than all of V."""
        latest = one.time + self._spec.window
        for time in vector:
            self._counters.time_tests += 1
            if time <= latest:
                return False
        return True
