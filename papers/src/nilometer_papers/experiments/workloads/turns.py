"""The order in which a join reads streams that all have tuples ready: one of each in turn."""

from __future__ import annotations

from collections.abc import Iterable

from nilometer_papers.algorithms.stream_tuple import StreamTuple


def in_turn(arrivals: Iterable[StreamTuple], streams: int) -> list[StreamTuple]:
    """The tuples of the streams in turn, as TurnOnStream has it in TR-010 Figure 5.

    Streams of unlike rates drift apart: those of few tuples are ahead in time. It ends with the
    stream of which there are the fewest.

    >>> one, two, three = (StreamTuple(time, 7, 0, time) for time in (1, 2, 3))
    >>> other = StreamTuple(9, 7, 1, 0)
    >>> in_turn([one, two, three, other], 2) == [one, other]
    True
    """
    lines: list[list[StreamTuple]] = [[] for _ in range(streams)]
    for one in arrivals:
        lines[one.stream].append(one)
    return [one for turn in zip(*lines, strict=False) for one in turn]
