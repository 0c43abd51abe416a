"""What the catalog keeps of a query besides its text: above all its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from nilometer.database.bucket_options import BUCKET_OPTIONS, read_requested
from nilometer.database.known import CHANGELOG
from nilometer.database.query_status import EngineChoice, OnError, QueryLimits
from nilometer.errors import (
    DiskFullError,
    DurationError,
    InputError,
    LimitError,
    LogFullError,
    NilometerError,
)
from nilometer.model.names import nearest
from nilometer.model.options import parse_count, parse_size
from nilometer.model.time import format_duration, parse_duration
from nilometer.sensors.catalog.stored_queries import HOSTED, READER, REPLACES, NamedQuery
from nilometer.sql.ddl.parts import GivenOption

TEMPORARY: Final = "temporary"
CHANGES_KEPT: Final = 86_400_000_000
_OWNER: Final = "owner"
NO_LIMIT: Final = "none"
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_READ: Final[Mapping[str, Callable[[str], int]]] = {
    "results": parse_size,
    "state": parse_size,
    "history": parse_duration,
    "shed": parse_count,
}
_ON_ERROR: Final = "on_error"
_ENGINE: Final = "engine"
_SHED_BY: Final = "shed_by"
_FROM_START: Final = "from start"


def read_limits(options: Mapping[str, GivenOption], before: QueryLimits) -> QueryLimits:
    """The limits that options set, over the default ones; `none` removes one."""
    values: dict[str, Any] = {}
    known = (*_READ, _ON_ERROR, _ENGINE, _SHED_BY, *BUCKET_OPTIONS)
    read_requested(options)
    for name, option in options.items():
        if name in BUCKET_OPTIONS:
            continue
        if name in (_ON_ERROR, _ENGINE):
            values[name] = _on_error(option) if name == _ON_ERROR else _engine(option)
            continue
        if name == _SHED_BY:
            values[name] = None if option.value.lower() == NO_LIMIT else option.value
            continue
        if name not in _READ:
            raise option.refusal(
                f"a query has no option {name}",
                hint=nearest(name, known) or f"choose among {', '.join(known)}",
            )
        values[name] = None if option.value.lower() == NO_LIMIT else _length(name, option)
    limits = replace(before, **values)
    if limits.shed is None and _SHED_BY in options and limits.shed_by is not None:
        raise options[_SHED_BY].refusal(
            "option shed_by is given without shed, so no rows are ever shed",
            hint="give shed as well, such as shed = '1000000'",
        )
    return limits


def require_no_shedding(limits: QueryLimits, why: str) -> None:
    """Refuse to shed rows where a query does not run in the shared engine."""
    if limits.shed is not None:
        raise InputError(
            "only queries of the shared engine can shed rows",
            detail=why,
            hint="leave out shed, or write the query so that it can run in the shared engine",
        )


def _on_error(option: GivenOption) -> OnError:
    try:
        return OnError(option.value.lower())
    except ValueError:
        raise option.refusal(
            f"option {_ON_ERROR} cannot be {option.value}",
            hint="write 'skip' to leave out rows that cannot be computed, or 'stop' to stop the "
            "query",
        ) from None


def _engine(option: GivenOption) -> EngineChoice:
    try:
        return EngineChoice(option.value.lower())
    except ValueError:
        raise option.refusal(
            f"option {_ENGINE} cannot be {option.value}",
            hint="write 'shared' for the shared engine, or 'own' for its own Spark streaming query",
        ) from None


def _length(name: str, option: GivenOption) -> int:
    try:
        length = _READ[name](option.value)
    except (InputError, DurationError) as error:
        raise option.refusal(
            f"option {name} cannot be used", detail=error.message, hint=error.hint
        ) from None
    if length <= 0:
        hint = f"write {name} = {NO_LIMIT} for no limit"
        raise option.refusal(f"option {name} must be greater than zero", hint=hint)
    return length


def usual_for(kind: str, usual: QueryLimits) -> QueryLimits:
    """The limits that a new query has by default; changes are kept for a day.

    Older changes are folded into the base of the answer, so nothing is lost.
    """
    if kind != CHANGELOG or usual.history is not None:
        return usual
    return replace(usual, history=CHANGES_KEPT)


def stored_options(
    limits: QueryLimits,
    *,
    is_temporary: bool,
    buckets: Mapping[str, Any],
    owner: str | None,
    hosted: str | None = None,
    reader: str | None = None,
    replaces: str | None = None,
) -> dict[str, Any]:
    """What the catalog keeps of a new query besides its text."""
    others = {
        **buckets,
        TEMPORARY: is_temporary or None,
        _OWNER: owner,
        HOSTED: hosted,
        READER: reader,
        REPLACES: replaces,
        _FROM_START: replaces and True,
    }
    return _without_nothing({**asdict(limits), **others})


def altered_options(query: NamedQuery, limits: QueryLimits) -> dict[str, Any]:
    """What the catalog keeps of a query with other limits."""
    return _without_nothing({**query.options, **asdict(limits)})


def _without_nothing(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def filled(limits: QueryLimits, usual: QueryLimits) -> QueryLimits:
    """Limits, with the default ones where none are set."""
    given = {name: value for name, value in asdict(limits).items() if value is not None}
    return replace(usual, **given)


def beyond(limits: QueryLimits, allowed: QueryLimits) -> str | None:
    """Which of these limits, if any, allows more than the other limits do."""
    for name in _READ:
        limit, bound = getattr(limits, name), getattr(allowed, name)
        if bound is not None and (limit is None or limit > bound):
            return name
    return None


def limits_of(query: NamedQuery) -> QueryLimits:
    """The limits that a query was given."""
    amounts = {name: query.options.get(name) for name in _READ}
    on_error, engine = query.options.get(_ON_ERROR), query.options.get(_ENGINE)
    return QueryLimits(
        **amounts,
        on_error=None if on_error is None else OnError(on_error),
        engine=None if engine is None else EngineChoice(engine),
        shed_by=query.options.get(_SHED_BY),
    )


def begins_at_start(query: NamedQuery) -> bool:
    """Whether it started at the oldest rows of its streams though its text does not say so."""
    return bool(query.options.get(_FROM_START, False))


def replaces(query: NamedQuery) -> str | None:
    """The query that it replaces once it has caught up; None: none."""
    return query.options.get(REPLACES)


def replacement_of(name: str) -> str:
    """The name of a query that is to replace another."""
    return f"{name} (new)"


def owner_of(query: NamedQuery) -> str | None:
    """The owner of a query, by the token that created it; None: no owner."""
    return query.options.get(_OWNER)


def is_temporary(query: NamedQuery) -> bool:
    return bool(query.options.get(TEMPORARY, False))


def shown_limits(limits: QueryLimits) -> str | None:
    """Limits as written in WITH."""
    parts = [
        f"{name} = '{_shown(name, value)}'"
        for name, value in asdict(limits).items()
        if value is not None
    ]
    return ", ".join(parts) or None


def _shown(name: str, value: Any) -> str:
    if name in (_ON_ERROR, _ENGINE, _SHED_BY, "shed"):
        return str(value).replace("'", "''")
    return format_duration(value) if name == "history" else shown_size(value)


def shown_size(size: int) -> str:
    """Bytes in human-readable form; whole numbers stay exact.

    >>> shown_size(1 << 30), shown_size(1536), shown_size(5)
    ('1 GB', '1.5 kB', '5 bytes')
    """
    amount, unit = float(size), 0
    while amount >= 1024 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.4g} {_UNITS[unit]}"


def results_error(name: str, error: NilometerError, limits: QueryLimits) -> NilometerError:
    """What stopped a query, naming its limit if it was one."""
    is_limit = isinstance(error, LogFullError) and not isinstance(error, DiskFullError)
    if not is_limit or limits.results is None:
        return error
    return _reached(name, "results", limits.results)


def state_error(name: str, state_bytes: int, limits: QueryLimits) -> LimitError | None:
    """Why a query must be stopped if its state has this size; None: it may go on."""
    if limits.state is None or state_bytes <= limits.state:
        return None
    return _reached(name, "state", limits.state)


def _reached(name: str, what: str, limit: int) -> LimitError:
    verb = "have" if what == "results" else "has"
    return LimitError(
        f"query {name} was stopped: its {what} {verb} reached {shown_size(limit)}",
        hint=f"ALTER QUERY {name} SET ({what} = '{shown_size(2 * limit)}') and START QUERY {name} "
        f"resume it where it was; DROP QUERY {name} deletes it",
    )
