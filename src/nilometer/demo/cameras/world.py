"""A corridor with cameras, and objects that move along it: simulated, but always the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Final

import numpy as np

from nilometer.kernels.arrays import Int64s

CAMERAS: Final = ("Camera1", "Camera2", "Camera3", "Camera4")
SECOND: Final = 1_000_000

_SEED: Final = 1959
_SLOWEST_LEG: Final = 3_500_000
_SEEN_AGAIN_AFTER: Final = 200_000
LONGEST_DELAY: Final = 400_000
"""No sighting takes longer than this (microseconds) to reach us from the camera."""


@dataclass(frozen=True)
class Sightings:
    """What one camera sees: object, true time, and when we receive it (microseconds)."""

    objects: Int64s
    times: Int64s
    arrivals: Int64s

    def __len__(self) -> int:
        return len(self.objects)

    def arrived(self, first: int, end: int) -> Sightings:
        """The sightings that arrive in [first, end)."""
        chosen = (self.arrivals >= first) & (self.arrivals < end)
        return Sightings(self.objects[chosen], self.times[chosen], self.arrivals[chosen])

    def within(self, first: int, last: int) -> slice:
        """The slice with times in [first, last], if they are in order of time."""
        return slice(
            int(np.searchsorted(self.times, first, "left")),
            int(np.searchsorted(self.times, last, "right")),
        )


@dataclass(frozen=True)
class World:
    """Every second `rate` objects enter the corridor; times are microseconds since `started`.

    On each leg between two cameras an object takes half a second to three and a half. A camera
    misses one object in twenty and sees one in ten twice.
    """

    started: int
    rate: int

    def sightings(self, camera: int, first: int, end: int) -> Iterator[Sightings]:
        """What a camera reports in the period [first, end) of arrival."""
        slowest = len(CAMERAS) * _SLOWEST_LEG + _SEEN_AGAIN_AFTER + LONGEST_DELAY
        oldest = max(0, (first - slowest) // SECOND)
        for second in range(oldest, -(-end // SECOND)):
            seen = _enter(self, second)[camera].arrived(first, end)
            if len(seen):
                yield Sightings(seen.objects, seen.times + self.started, seen.arrivals)

    def arrivals(self, camera: int, first: int, end: int) -> Sightings:
        """The same in the order of arrival."""
        return _in_order(list(self.sightings(camera, first, end)), "arrivals")

    def tracks(self, end: int, longest_leg: int) -> set[tuple[int, ...]]:
        """The true answer: (object, time at each camera), no leg longer than `longest_leg`.

        Computed object by object, from what has arrived before `end`.
        """
        seen: dict[int, list[list[int]]] = defaultdict(lambda: [[] for _ in CAMERAS])
        for camera in range(len(CAMERAS)):
            for part in self.sightings(camera, 0, end):
                for number, time in zip(part.objects.tolist(), part.times.tolist(), strict=True):
                    seen[number][camera].append(time)
        return {
            (number, *times)
            for number, by_camera in seen.items()
            for times in product(*by_camera)
            if all(0 <= after - before <= longest_leg for before, after in pairwise(times))
        }

    def on_the_way(self, end: int, window: int, every: int) -> dict[int, dict[str, int]]:
        """The true answer at each multiple of `every`: objects that a camera has seen within
        `window` and the next camera has not, by camera, where there are any.

        Computed instant by instant, up to where nothing that arrives after `end` can matter.
        """
        seen = [self._all_seen(camera, end) for camera in range(len(CAMERAS))]
        answers = {}
        for instant in self._instants(seen, every):
            near = [camera.objects[camera.within(instant - window, instant)] for camera in seen]
            counts = [len(np.setdiff1d(here, there)) for here, there in pairwise(near)]
            answers[instant] = _counted(CAMERAS[:-1], counts)
        return answers

    def busy(self, end: int, window: int, every: int, cameras: int) -> dict[int, dict[str, int]]:
        """The true answer at each multiple of `every`: how often each of the first `cameras` has
        seen something within `window`, where it has."""
        seen = [self._all_seen(camera, end) for camera in range(cameras)]
        answers = {}
        for instant in self._instants(seen, every):
            near = [len(camera.times[camera.within(instant - window, instant)]) for camera in seen]
            answers[instant] = _counted(CAMERAS[:cameras], near)
        return answers

    def _instants(self, seen: Sequence[Sightings], every: int) -> range:
        """The multiples of `every` for which everything relevant has arrived."""
        if not all(map(len, seen)):
            return range(0)
        known = min(int(camera.times[-1]) for camera in seen) - LONGEST_DELAY
        return range(-(-self.started // every) * every, known, every)

    def _all_seen(self, camera: int, end: int) -> Sightings:
        """What has arrived before `end`, in order of time."""
        return _in_order(list(self.sightings(camera, 0, end)), "times")


def _counted(cameras: Sequence[str], counts: Sequence[int]) -> dict[str, int]:
    return {camera: count for camera, count in zip(cameras, counts, strict=True) if count}


def _in_order(parts: list[Sightings], by: str) -> Sightings:
    """All of several sightings, in the order of their times or arrivals."""
    if not parts:
        return Sightings(*(np.empty(0, np.int64) for _ in range(3)))
    objects, times, arrivals = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("objects", "times", "arrivals")
    )
    order = np.argsort(times if by == "times" else arrivals, kind="stable")
    return Sightings(objects[order], times[order], arrivals[order])


@lru_cache(maxsize=64)
def _enter(world: World, second: int) -> list[Sightings]:
    """What the cameras see of the objects that enter within one second."""
    random = np.random.default_rng([_SEED, second])
    objects = second * world.rate + np.arange(world.rate)
    there = second * SECOND + np.sort(random.integers(0, SECOND, world.rate))
    cameras = []
    for _ in CAMERAS:
        there = there + random.integers(500_000, _SLOWEST_LEG, world.rate)
        once = random.random(world.rate) >= 0.05
        twice = once & (random.random(world.rate) < 0.1)
        times = np.concatenate([there[once], there[twice] + _SEEN_AGAIN_AFTER])
        arrivals = times + random.integers(0, LONGEST_DELAY, len(times))
        cameras.append(Sightings(np.concatenate([objects[once], objects[twice]]), times, arrivals))
    return cameras
