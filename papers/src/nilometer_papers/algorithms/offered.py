"""The algorithms offered to queries: each one of the registry, hosted in place of a join.

The product finds it by the entry point group `nilometer.algorithms`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer.operators.offered_algorithms import OfferedAlgorithm
from nilometer.operators.window_join import WindowJoinSpec
from nilometer_papers.algorithms.hosted_join import HostedJoinSpec
from nilometer_papers.algorithms.registry import ENTRIES


def _host(name: str, join: WindowJoinSpec, parameters: AlgorithmParameters) -> HostedJoinSpec:
    return HostedJoinSpec(join, name, parameters)


OFFERED: Final = tuple(
    OfferedAlgorithm(one.name, one.paper, one.parameters, partial(_host, one.name), one.may_scan)
    for one in ENTRIES
)
