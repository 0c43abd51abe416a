"""How long algorithms take per tuple, and whether they all give the same results."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time_ns
from typing import Final

from nilometer.errors import NilometerError
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.stream_tuple import Result, StreamTuple

_MODULUS: Final = 2**64


class WrongResultsError(NilometerError):
    """Two ways to the same answer differ: the measurements mean nothing."""


@dataclass(frozen=True)
class Block:
    """Some tuples that were processed in succession."""

    processed: int
    """How many tuples had been processed by its end."""
    microseconds: float
    """CPU time per tuple."""
    comparisons: float
    """Comparisons per tuple."""
    results: int = 0
    """Results that came with these tuples."""


@dataclass(frozen=True)
class Service:
    """A run over some arrivals."""

    blocks: tuple[Block, ...]
    results: int
    fingerprint: int
    """Equal for equal multisets of results."""

    @property
    def microseconds(self) -> float:
        """Mean CPU time per tuple over all blocks of the same length."""
        return sum(block.microseconds for block in self.blocks) / len(self.blocks)

    @property
    def comparisons(self) -> float:
        """Mean comparisons per tuple over all blocks of the same length."""
        return sum(block.comparisons for block in self.blocks) / len(self.blocks)


def serve(algorithm: JoinAlgorithm, arrivals: Sequence[StreamTuple], block: int = 1000) -> Service:
    """Process all arrivals; times are averaged over blocks of tuples, as in TR-010 section 4.3."""
    blocks: list[Block] = []
    results = fingerprint = 0
    with no_garbage_collection():
        for first in range(0, len(arrivals), block):
            part, joined = arrivals[first : first + block], []
            compared, began = algorithm.counters.comparisons, process_time_ns()
            for arrival in part:
                joined += algorithm.process(arrival)
            spent = process_time_ns() - began
            compared = algorithm.counters.comparisons - compared
            took, compared_each = spent / 1000 / len(part), compared / len(part)
            blocks.append(Block(first + len(part), took, compared_each, len(joined)))
            results += len(joined)
            fingerprint = add_fingerprints(fingerprint, fingerprint_of(joined))
    rest = algorithm.finish()
    fingerprint = add_fingerprints(fingerprint, fingerprint_of(rest))
    return Service(tuple(blocks), results + len(rest), fingerprint)


def check_same(services: Mapping[str, Service]) -> None:
    """Refuse to report on algorithms that disagree."""
    if len({(one.results, one.fingerprint) for one in services.values()}) > 1:
        counts = ", ".join(f"{name} {one.results}" for name, one in services.items())
        raise WrongResultsError("algorithms give different results", detail=counts)


def fingerprint_of(results: Iterable[Result]) -> int:
    """A number that is equal for equal multisets of results, and can be added up."""
    return fingerprint_of_numbers(tuple(one.number for one in result) for result in results)


def fingerprint_of_numbers(results: Iterable[tuple[int, ...]]) -> int:
    """The same for results given as the numbers of their tuples."""
    return sum(map(hash, results)) % _MODULUS


def add_fingerprints(first: int, second: int) -> int:
    """The fingerprint of both sets of results together."""
    return (first + second) % _MODULUS


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the cyclic garbage collector out of the measurements."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
