"""Algorithms that installed packages offer for joins, instead of the columnar operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nilometer.errors import InputError
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.model.installed import installed, load_installed
from nilometer.model.names import nearest
from nilometer.operators.stage import OperatorSpec
from nilometer.operators.window_join import WindowJoinSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS: Final = "nilometer.algorithms"
"""The entry point group; each entry names a sequence of `OfferedAlgorithm`."""


@dataclass(frozen=True)
class OfferedAlgorithm:
    """An offered algorithm: its name, its description, and how it is run."""

    name: str
    """Its name in `algorithm=` and in hints, in capital letters."""
    paper: str
    """Where it is described."""
    parameters: frozenset[str]
    """The names of the parameters that it accepts."""
    host: Callable[[WindowJoinSpec, AlgorithmParameters], OperatorSpec]
    """The operator that runs it instead of a join; raises an error if it cannot."""
    may_scan: bool = False
    """Windows may be without a hash table, so where `buckets` is left out the planner chooses."""


def find_algorithm(name: str) -> OfferedAlgorithm:
    """The algorithm with a name, in any case, with - or _; NLJ may be omitted."""
    offered = _offered()
    if not offered:
        raise InputError(
            f"there is no algorithm {name!r} here: the papers' algorithms are not installed",
            hint="pip install nilometer-papers",
        )
    wanted = name.upper().replace("-", "_")
    algorithm = offered.get(wanted) or offered.get(f"{wanted}_NLJ")
    if algorithm is None:
        raise InputError(
            f"there is no algorithm {name!r}",
            detail=nearest(name, offered),
            hint=f"choose {', '.join(offered)}",
        )
    return algorithm


def _offered() -> Mapping[str, OfferedAlgorithm]:
    return {one.name: one for entry in installed(ENTRY_POINTS).values() for one in _load(entry)}


def _load(entry: EntryPoint) -> Sequence[OfferedAlgorithm]:
    algorithms: Sequence[OfferedAlgorithm] = load_installed(entry, "algorithms of")
    if not all(isinstance(one, OfferedAlgorithm) for one in algorithms):
        raise InputError(
            f"algorithms of {entry.name} are not algorithms",
            detail=entry.value,
            hint="name a sequence of OfferedAlgorithm",
        )
    return algorithms
