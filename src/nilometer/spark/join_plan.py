"""The plan of `nm.window_join`: the same as SQL compiles to, from a description in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from nilometer.errors import InputError, Place
from nilometer.kernels.chunk import Kernel
from nilometer.model.network import TimeNetwork
from nilometer.model.time import Duration
from nilometer.model.windows import Windows, read_windows
from nilometer.operators.offered_algorithms import find_algorithm
from nilometer.spark.conditions import Where, read_conditions
from nilometer.spark.streams import JoinedStream, JoinInput, Keys, read_streams
from nilometer.spark.types import arrow_types
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.catalog import Catalog, Engine, Relation
from nilometer.sql.expressions.scalars import RESULT_TIME, ColumnRef, Scalar, column
from nilometer.sql.plan.join_plan import ChosenAlgorithm, Item, JoinPlan, Source
from nilometer.sql.rules import apply_rules

_NOWHERE = Place("", 0, 0)


@dataclass(frozen=True)
class JoinOptions:
    """The options of a join, apart from its inputs."""

    windows: Windows
    on: Keys = None
    time: str | Mapping[str, str] | None = None
    lateness: Duration | Mapping[str, Duration] | None = None
    idle: Duration | Mapping[str, Duration] | None = None
    where: Where = None
    kernel: str = "auto"
    algorithm: str | None = None
    buckets: int | None = None


def plan_window_join(
    inputs: Mapping[str, JoinInput], options: JoinOptions, engine: Engine, partitions: int
) -> JoinPlan:
    """The plan of a join of these inputs; raises an error if its description is wrong."""
    joined = read_streams(inputs, options.on, options.time, options.lateness, options.idle)
    windows = read_windows(options.windows)
    TimeNetwork(tuple(inputs), windows)
    kernel, algorithm = _kernel(options.kernel, joined), _algorithm(options)
    buckets = partitions if options.buckets is None else options.buckets
    if buckets < 1:
        raise InputError(f"there must be at least one bucket, got {buckets}")
    relations = {stream.name: _relation(stream) for stream in joined}
    scope = Scope("", tuple(_unit(relation) for relation in relations.values()))
    conditions, functions = read_conditions(options.where, scope)
    plan = JoinPlan(
        "",
        Catalog(relations, functions, engine),
        tuple(Source(name, relation, _NOWHERE) for name, relation in relations.items()),
        windows,
        (*_equalities(joined), *conditions),
        (*map(_struct, joined), Item(RESULT_TIME.column, Scalar(column(RESULT_TIME), _NOWHERE))),
        _NOWHERE,
        wanted_kernel=kernel,
        algorithm=algorithm,
        buckets=buckets,
    )
    return apply_rules(plan)


def _relation(stream: JoinedStream) -> Relation:
    time = None if stream.time is None else stream.columns[stream.time]
    types = arrow_types(stream.schema)
    return Relation(stream.name, tuple(stream.columns), types, time, stream.clock)


def _unit(relation: Relation) -> FromUnit:
    columns = {c: column(ColumnRef(relation.name, c)) for c in relation.columns}
    time = ColumnRef(relation.name, relation.time_column)
    return FromUnit(relation.name, columns, (time,), {relation.name: relation})


def _equalities(joined: Sequence[JoinedStream]) -> list[Scalar]:
    """The keys as written in SQL: A.k = B.k AND B.k = C.k."""
    keys = [[ColumnRef(s.name, s.columns[place]) for place in s.keys] for s in joined]
    return [
        Scalar(exp.EQ(this=column(left), expression=column(right)), _NOWHERE)
        for first, second in pairwise(keys)
        for left, right in zip(first, second, strict=True)
    ]


def _struct(stream: JoinedStream) -> Item:
    fields: list[exp.Expr] = []
    for name in stream.columns:
        fields += [exp.Literal.string(name), column(ColumnRef(stream.name, name))]
    tree = exp.Anonymous(this="named_struct", expressions=fields)
    return Item(stream.name, Scalar(tree, _NOWHERE))


def _algorithm(options: JoinOptions) -> ChosenAlgorithm | None:
    if options.algorithm is None:
        return None
    if options.kernel != "auto":
        raise InputError(
            "a join is run by a kernel or by an algorithm",
            detail=f"got kernel={options.kernel!r} and algorithm={options.algorithm!r}",
            hint="leave one of them out",
        )
    return ChosenAlgorithm(find_algorithm(str(options.algorithm)))


def _kernel(name: str, joined: tuple[JoinedStream, ...]) -> Kernel | None:
    keyed = bool(joined[0].keys)
    if name == "auto":
        return None
    if name not in [kernel.value for kernel in Kernel]:
        raise InputError(
            f"there is no kernel {name}",
            hint=f"choose one of auto, {', '.join(kernel.value for kernel in Kernel)}",
        )
    if name == Kernel.HASH and not keyed:
        raise InputError(
            "the hash kernel needs a key", hint="name key columns with on=, or use kernel='merge'"
        )
    return Kernel(name)
