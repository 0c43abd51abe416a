"""All join algorithms by name: what each can join, where its paper describes it, and its class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer_papers.algorithms.bew_hash_join import BEWHashJoin
from nilometer_papers.algorithms.bew_join import BEWJoin
from nilometer_papers.algorithms.buffers import HashBuffer
from nilometer_papers.algorithms.conditions import SameKey
from nilometer_papers.algorithms.count_join import CountNLJ
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.few_hash_join import FEWHashJoin
from nilometer_papers.algorithms.few_join import FEWJoin
from nilometer_papers.algorithms.gca import GCA
from nilometer_papers.algorithms.general_lazy_nlj import GeneralLazyNLJ
from nilometer_papers.algorithms.graph_join import GraphBEWJoin
from nilometer_papers.algorithms.hw_join import HWJoin
from nilometer_papers.algorithms.hybrid_join import HybridJoin
from nilometer_papers.algorithms.in_time_order import InTimeOrder
from nilometer_papers.algorithms.join_algorithm import JoinAlgorithm
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.lazy_nlj import LazyNLJ
from nilometer_papers.algorithms.lca import LCA
from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.algorithms.mw_join import MWJoin
from nilometer_papers.algorithms.naive_nlj import NaiveNLJ
from nilometer_papers.algorithms.nlw_join import NLWJoin
from nilometer_papers.algorithms.parameters import buckets_of, order_of
from nilometer_papers.algorithms.path_join import HWPathJoin, NLWPathJoin
from nilometer_papers.algorithms.pulled_w_join import BUCKETS, PulledWJoin
from nilometer_papers.algorithms.ripple_join import RippleJoin
from nilometer_papers.algorithms.xjoin import XJoin


class Windows(Enum):
    """The windows an algorithm can handle."""

    UNIFORM = "one window for all pairs of streams"
    PER_STREAM = "one window for each stream"
    PATH = "directed windows along a path of the streams in their order"
    ANY = "any windows between pairs"
    ROWS = "the last rows of each stream"


Make = Callable[..., JoinAlgorithm]
"""How a running algorithm is made from a task and its parameters."""

NO_PARAMETERS: Final = AlgorithmParameters()


@dataclass(frozen=True)
class Algorithm:
    """An algorithm, before it runs."""

    name: str
    """As written in `algorithm=` and in hints."""
    make: Make
    paper: str
    windows: Windows
    needs_key: bool = False
    """It looks tuples up by one key that all streams share."""
    parameters: frozenset[str] = frozenset()
    """The parameters it accepts."""
    may_scan: bool = False
    """Windows may be without a hash table, which is 0 buckets."""

    def start(
        self, task: JoinTask, parameters: AlgorithmParameters = NO_PARAMETERS
    ) -> JoinAlgorithm:
        """The running algorithm; an error says why it cannot handle this task."""
        if not takes(self.windows, task):
            raise InputError(
                f"{self.name} cannot take these windows",
                detail=f"it takes {self.windows.value}",
                hint=f"{names_for(task)} can take them",
            )
        if self.needs_key and not isinstance(task.condition, SameKey):
            raise InputError(
                f"{self.name} needs a key that all streams have in common",
                detail="it looks tuples up in hash tables",
                hint=f"{names_for(task)} can join on other conditions",
            )
        self._check_parameters(parameters)
        values = {
            "every": parameters.tau,
            "order": order_of(parameters, task),
            "buckets": buckets_of(parameters, task),
            "cleanup": parameters.cleanup,
        }
        return self.make(task, **{name: one for name, one in values.items() if one is not None})

    def _check_parameters(self, parameters: AlgorithmParameters) -> None:
        if 0 in (parameters.buckets or ()) and not self.may_scan:
            raise InputError(
                f"{self.name} has a hash table for every stream, of 1 bucket or more, got 0",
                hint="HYBRID can do without some of them",
            )
        if refused := parameters.given.keys() - self.parameters:
            takes_none = f"{self.name} has no parameters"
            raise InputError(
                f"{self.name} has no parameter {', '.join(sorted(refused))}",
                detail=f"it has {', '.join(sorted(self.parameters))}"
                if self.parameters
                else takes_none,
                hint="leave it out",
            )


def _in_time_order(make: Make) -> Make:
    """For algorithms that assume tuples arrive in the order of their timestamps."""
    return lambda task, **options: InTimeOrder(make(task, **options))


def _one_table(make: Make) -> Make:
    """For algorithms whose hash tables all have the same number of buckets."""

    def made(task: JoinTask, buckets: Sequence[int] | None = None, **options: Any) -> JoinAlgorithm:
        if buckets is None:
            return make(task, **options)
        if len(set(buckets)) > 1:
            raise InputError("all hash tables of this algorithm have the same number of buckets")
        return make(task, buckets=buckets[0], **options)

    return made


def _general(task: JoinTask, order: Sequence[int] | None = None, **options: Any) -> JoinAlgorithm:
    """With new tuples at the top of one order, as no other place for them can be named."""
    if order is None:
        return GeneralLazyNLJ(task, **options)
    orders = [[i, *(j for j in order if j != i)] for i in range(task.streams)]
    return GeneralLazyNLJ(task, orders, **options)


def _hybrid(task: JoinTask, buckets: Sequence[int] | None = None, **options: Any) -> JoinAlgorithm:
    tables = None if buckets is None else {i: b for i, b in enumerate(buckets) if b}
    return HybridJoin(task, tables, **options)


_LOOPS: Final = frozenset({"tau", "order"})
_TABLES: Final = frozenset({"tau", "order", "buckets"})


ENTRIES: Final = (
    Algorithm("NLW", NLWJoin, "TR-010 section 3.1.1", Windows.UNIFORM),
    Algorithm(
        "HW",
        _one_table(HWJoin),
        "TR-010 section 3.1.2",
        Windows.UNIFORM,
        needs_key=True,
        parameters=frozenset({"buckets"}),
    ),
    Algorithm("MW", MWJoin, "TR-010 section 3.2", Windows.UNIFORM),
    Algorithm("BEW", BEWJoin, "SSDBM section 3.1", Windows.UNIFORM),
    Algorithm("BEW_HASH", BEWHashJoin, "SSDBM section 3.1", Windows.UNIFORM, needs_key=True),
    Algorithm(
        "RIPPLE",
        RippleJoin,
        "TR-010 section 4.3",
        Windows.UNIFORM,
        parameters=frozenset({"cleanup"}),
    ),
    Algorithm(
        "XJOIN",
        _one_table(XJoin),
        "TR-010 section 4.3",
        Windows.UNIFORM,
        needs_key=True,
        parameters=frozenset({"cleanup", "buckets"}),
    ),
    Algorithm("NLW_PULLED", PulledWJoin, "TR-010 Figure 5", Windows.UNIFORM),
    Algorithm(
        "HW_PULLED",
        _one_table(partial(PulledWJoin, buckets=BUCKETS)),
        "TR-010 section 3.1.2",
        Windows.UNIFORM,
        needs_key=True,
        parameters=frozenset({"buckets"}),
    ),
    Algorithm(
        "HW_BUCKETS",
        _one_table(partial(HWJoin, buckets=BUCKETS)),
        "TR-010 section 3.1.2",
        Windows.UNIFORM,
        needs_key=True,
        parameters=frozenset({"buckets"}),
    ),
    Algorithm(
        "XJOIN_BUCKETS",
        _one_table(partial(XJoin, buckets=BUCKETS)),
        "TR-010 section 4.3",
        Windows.UNIFORM,
        needs_key=True,
        parameters=frozenset({"cleanup", "buckets"}),
    ),
    Algorithm("NLW_PATH", NLWPathJoin, "TR-010 section 5.2.1", Windows.PATH),
    Algorithm("HW_PATH", HWPathJoin, "TR-010 section 5.2.1", Windows.PATH, needs_key=True),
    Algorithm("GRAPH_BEW", GraphBEWJoin, "SSDBM section 4.2", Windows.ANY),
    Algorithm(
        "GRAPH_BEW_HASH",
        partial(GraphBEWJoin, kind=HashBuffer),
        "SSDBM section 4.2",
        Windows.ANY,
        needs_key=True,
    ),
    Algorithm("FEW", FEWJoin, "SSDBM section 3.2", Windows.UNIFORM),
    Algorithm("FEW_HASH", FEWHashJoin, "SSDBM section 3.2", Windows.UNIFORM, needs_key=True),
    Algorithm("GCA", GCA, "TR-010 section 5.1", Windows.ANY),
    Algorithm("GCA_NLW", partial(GCA, base=NLWJoin), "TR-010 section 5.1", Windows.ANY),
    Algorithm(
        "GCA_HW", partial(GCA, base=HWJoin), "TR-010 section 5.1", Windows.ANY, needs_key=True
    ),
    Algorithm("GCA_BEW", partial(GCA, base=BEWJoin), "TR-010 section 5.1", Windows.ANY),
    Algorithm("LCA", LCA, "TR-010 section 5.1", Windows.ANY),
    Algorithm(
        "NAIVE_NLJ",
        _in_time_order(NaiveNLJ),
        "Golab section 3.1",
        Windows.PER_STREAM,
        parameters=_LOOPS,
    ),
    Algorithm(
        "EAGER_NLJ",
        _in_time_order(EagerNLJ),
        "Golab section 3.2",
        Windows.PER_STREAM,
        parameters=frozenset({"order"}),
    ),
    Algorithm(
        "LAZY_NLJ",
        _in_time_order(LazyNLJ),
        "Golab section 3.3",
        Windows.PER_STREAM,
        parameters=_LOOPS,
    ),
    Algorithm(
        "GENERAL_NLJ",
        _in_time_order(_general),
        "Golab section 3.3",
        Windows.PER_STREAM,
        parameters=_LOOPS,
    ),
    Algorithm(
        "MULTIWAY_HASH",
        _in_time_order(MultiwayHashJoin),
        "Golab section 3.4",
        Windows.PER_STREAM,
        needs_key=True,
        parameters=_TABLES,
    ),
    Algorithm(
        "HYBRID",
        _in_time_order(_hybrid),
        "Golab section 3.5",
        Windows.PER_STREAM,
        parameters=_TABLES,
        may_scan=True,
    ),
    Algorithm(
        "COUNT_NLJ",
        _in_time_order(CountNLJ),
        "Golab section 3.6",
        Windows.ROWS,
        parameters=_LOOPS,
    ),
)

ALGORITHMS: Final[Mapping[str, Algorithm]] = {one.name: one for one in ENTRIES}


def takes(windows: Windows, task: JoinTask) -> bool:
    """Whether algorithms for one form of windows can handle those of a task."""
    match windows:
        case Windows.UNIFORM:
            return task.window is not None
        case Windows.PER_STREAM:
            return task.stream_windows is not None
        case Windows.PATH:
            return task.rows is None and is_path(task)
        case Windows.ANY:
            return task.rows is None
        case Windows.ROWS:
            return task.rows is not None


def is_path(task: JoinTask) -> bool:
    """Whether each stream follows the one before it, and there is no other condition on time."""
    given, last = task.network.given, task.streams - 1
    steps = all(given[i + 1][i] == 0 for i in range(last))
    return steps and all(
        given[i][j] == task.bounds[i][j] if j == i + 1 else _says_nothing(task, i, j)
        for i in range(last + 1)
        for j in range(last + 1)
        if i != j
    )


def _says_nothing(task: JoinTask, i: int, j: int) -> bool:
    """Whether a bound follows from the steps of the path alone."""
    given, between = task.network.given, range(min(i, j), max(i, j))
    along = sum(given[k][k + 1] for k in between) if i < j else 0
    return given[i][j] >= along


def names_for(task: JoinTask) -> str:
    """The algorithms that can handle a task, as a list for people."""
    able = [
        one.name
        for one in ENTRIES
        if takes(one.windows, task) and (not one.needs_key or isinstance(task.condition, SameKey))
    ]
    return ", ".join(able) or "none of the papers' algorithms"
