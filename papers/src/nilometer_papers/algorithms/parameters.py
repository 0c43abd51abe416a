"""Parameters that configure an algorithm, in terms of its task."""

from __future__ import annotations

from nilometer.errors import InputError
from nilometer.model.algorithm_parameters import AlgorithmParameters
from nilometer_papers.algorithms.hybrid_condition import shared_keys
from nilometer_papers.algorithms.join_task import JoinTask


def order_of(parameters: AlgorithmParameters, task: JoinTask) -> list[int] | None:
    """The order of the for-loops, as positions of streams."""
    if parameters.order is None:
        return None
    places = {name.lower(): i for i, name in enumerate(task.network.streams)}
    wanted = [places.get(name.lower()) for name in parameters.order]
    if None in wanted or sorted(one for one in wanted if one is not None) != sorted(
        places.values()
    ):
        raise InputError(
            f"an order names every stream once, got {', '.join(parameters.order)}",
            hint=f"the streams are {', '.join(task.network.streams)}",
        )
    return [one for one in wanted if one is not None]


def buckets_of(parameters: AlgorithmParameters, task: JoinTask) -> list[int] | None:
    """The number of buckets of each stream's hash table, 0 for none.

    One number is for the streams that share a key with another.
    """
    if parameters.buckets is None:
        return None
    if len(parameters.buckets) not in (1, task.streams):
        raise InputError(
            f"there are {len(parameters.buckets)} numbers of buckets for {task.streams} streams",
            hint="give one for all, or one for each stream",
        )
    if len(parameters.buckets) > 1:
        return list(parameters.buckets)
    keys = shared_keys(task.condition, task.streams)
    keyed = frozenset().union(*(key.streams for key in keys)) or range(task.streams)
    return [parameters.buckets[0] if i in keyed else 0 for i in range(task.streams)]
