"""The options of a query that say into how many buckets its work is split, and how."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.kernels.routing import MOST_BUCKETS
from nilometer.sensors.catalog.stored_queries import HOSTED, NamedQuery
from nilometer.sql.ddl.parts import GivenOption
from nilometer.sql.plan.changes_plan import Plan
from nilometer.sql.plan.parting import Parting
from nilometer.sql.rules.spread_joins import choose_stream

_BUCKETS: Final = "buckets"
_SPREAD: Final = "spread"
_STREAM: Final = "spread_stream"
BUCKET_OPTIONS: Final = (_BUCKETS, _SPREAD, _STREAM)
_BY_ITSELF: Final = "spreads by itself"
_NAMED: Final = "names its spread stream"
_MOVED: Final = "moved"
_AUTO: Final = "auto"


@dataclass(frozen=True)
class RequestedBuckets:
    """What a statement asks for; None: it says nothing about it."""

    buckets: int | None = None
    spread: int | None = None
    """How many buckets the rows of a key of its join are spread over."""
    by_itself: bool = False
    """Whether the database spreads them further as it measures hot keys."""
    stream: str | None = None
    """The stream whose rows are dealt out."""

    @property
    def is_nothing(self) -> bool:
        return self == NOTHING_REQUESTED

    @property
    def is_spread(self) -> bool:
        """Whether it says how keys are spread."""
        return self.by_itself or self.spread is not None or self.stream is not None


NOTHING_REQUESTED: Final = RequestedBuckets()


def read_requested(options: Mapping[str, GivenOption]) -> RequestedBuckets:
    """What options ask for."""
    spread = options.get(_SPREAD)
    by_itself = spread is not None and spread.value.lower() == _AUTO
    stream = options.get(_STREAM)
    return RequestedBuckets(
        _number(
            options, _BUCKETS, "write a number from 1 to {}: at most one core works on a bucket"
        ),
        None
        if by_itself
        else _number(
            options, _SPREAD, "write a number from 1 to {}, or 'auto': as keys are measured"
        ),
        by_itself,
        None if stream is None else stream.value,
    )


def _number(options: Mapping[str, GivenOption], name: str, hint: str) -> int | None:
    option = options.get(name)
    if option is None:
        return None
    if not re.fullmatch("[0-9]{1,4}", option.value) or not 1 <= int(option.value) <= MOST_BUCKETS:
        raise option.refusal(
            f"option {name} cannot be {option.value}", hint=hint.format(MOST_BUCKETS)
        )
    return int(option.value)


def requested_options(
    before: Mapping[str, Any], requested: RequestedBuckets, plan: Callable[[], Plan]
) -> dict[str, Any]:
    """The options of a query with what is asked for; its plan says which streams it has."""
    options = dict(before)
    if requested.buckets is not None:
        options[_BUCKETS] = requested.buckets
    if not requested.is_spread:
        return options
    if requested.by_itself:
        options[_BY_ITSELF] = True
    elif requested.spread is not None:
        options.pop(_BY_ITSELF, None)
    elif _SPREAD not in before:
        raise InputError(
            "option spread_stream is given, but no rows are spread",
            hint="give spread as well, such as spread = 4",
        )
    options[_SPREAD] = requested.spread or before.get(_SPREAD, 1)
    if requested.stream is not None:
        options[_NAMED] = True
    if requested.stream is not None or not (_NAMED in before or before.get(_SPREAD, 1) > 1):
        options[_STREAM] = choose_stream(plan(), requested.stream)
    return options


def buckets_of(query: NamedQuery) -> int | None:
    """How many buckets a query started with, as its state depends on it; None: not stored."""
    return query.options.get(_BUCKETS)


def parting_of(options: Mapping[str, Any]) -> Parting | None:
    """How the rows of a key are spread; None: nothing was ever said about it."""
    return Parting(options[_STREAM], options[_SPREAD]) if _SPREAD in options else None


def spreads_by_itself(query: NamedQuery) -> bool:
    """Whether the database spreads its hot keys as it measures them."""
    return bool(query.options.get(_BY_ITSELF, False))


def widest_spreads(query: NamedQuery) -> tuple[NamedQuery, NamedQuery]:
    """A query that is not spread, and the same in all of its buckets."""
    narrow = replace(query, options={**query.options, _SPREAD: 1})
    return narrow, replace(query, options={**query.options, _SPREAD: buckets_of(query) or 1})


def written(query: NamedQuery) -> str:
    """The buckets of a query as they are written in WITH."""
    parting = parting_of(query.options)
    parts = None if parting is None else parting.parts
    return _written(RequestedBuckets(buckets_of(query), parts, spreads_by_itself(query)))


def _written(requested: RequestedBuckets) -> str:
    parts = [] if requested.buckets is None else [f"{_BUCKETS} = {requested.buckets}"]
    if requested.by_itself or requested.spread is not None:
        parts.append(f"{_SPREAD} = {repr(_AUTO) if requested.by_itself else requested.spread}")
    if requested.stream is not None:
        parts.append(f"{_STREAM} = '{requested.stream}'")
    return ", ".join(parts)


def idle_cores(query: NamedQuery, cores: int) -> str | None:
    """What to say of a query that leaves half of the cores, or more, without a bucket."""
    buckets = buckets_of(query)
    if hosted_id(query) is not None or buckets is None or 2 * buckets > cores:
        return None
    return (
        f"Cores: {cores} are there now, and at most {buckets} of them work for this query; "
        f"ALTER QUERY {query.name} SET ({_BUCKETS} = {min(cores, MOST_BUCKETS)}) gives it more"
    )


def moved_of(query: NamedQuery) -> str | None:
    """The copy of its state with which it went on in other buckets, if it did."""
    return query.options.get(_MOVED)


def moved_to(query: NamedQuery, moved: str | None) -> dict[str, Any]:
    """What the catalog keeps of a query that goes on with this copy of its state."""
    options = {name: value for name, value in query.options.items() if name != _MOVED}
    return options if moved is None else {**options, _MOVED: moved}


def with_requested(
    query: NamedQuery, requested: RequestedBuckets, plan: Callable[[], Plan]
) -> NamedQuery:
    """A query as it is asked for; refused where it has no buckets of its own."""
    if requested.buckets == buckets_of(query) and not requested.is_spread:
        return query
    if hosted_id(query) is not None and not requested.is_nothing:
        raise InputError(
            f"{query.name} runs in the shared engine, where a query has one bucket",
            hint=f"drop {query.name}, and create it WITH ({_written(requested)}): it then has a "
            "streaming query of its own",
        )
    return replace(query, options=requested_options(query.options, requested, plan))


def hosted_id(query: NamedQuery) -> str | None:
    """The id of a query in the shared engine; None: it has an engine of its own."""
    return query.options.get(HOSTED)
