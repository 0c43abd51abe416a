"""SHOW ALERTS, and DESCRIBE of an alert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from nilometer.alerts.groups import shown_key
from nilometer.alerts.rule import AlertState
from nilometer.alerts.status import AlertStatus
from nilometer.log.layout import TIMESTAMP
from nilometer.model.names import count
from nilometer.model.time import format_duration, format_instant
from nilometer.sensors.catalog.outcome import Outcome

_SHOWN: Final = pa.schema(
    {
        "name": pa.string(),
        "on": pa.string(),
        "state": pa.string(),
        "since": TIMESTAMP,
        "value": pa.string(),
        "firing": pa.int64(),
        "no_data": pa.int64(),
        "groups": pa.int64(),
        "silenced_until": TIMESTAMP,
        "delivery": pa.string(),
        "error": pa.string(),
    }
)


def show_alerts(statuses: Sequence[AlertStatus]) -> Outcome:
    """SHOW ALERTS."""
    rows = [
        (
            one.name,
            one.definition.source,
            str(one.state),
            one.since,
            one.value,
            one.count(AlertState.FIRING),
            one.count(AlertState.NO_DATA),
            len(one.groups),
            one.silenced_until,
            one.delivery,
            one.error,
        )
        for one in statuses
    ]
    columns = zip(*rows, strict=True) if rows else [[] for _ in _SHOWN]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _SHOWN, strict=True)]
    return Outcome(count(len(rows), "alert"), pa.Table.from_arrays(arrays, schema=_SHOWN))


def describe_alert(status: AlertStatus) -> Outcome:
    """DESCRIBE: the definition, and the status of each group."""
    one = status.definition
    properties = {
        "on": one.source,
        "when": one.condition,
        "for": None if one.condition is None else format_duration(one.rule.hold),
        "clear when": one.clear,
        "per": ", ".join(one.per) or None,
        "no data for": _length(one.rule.no_data),
        "history": _length(one.limits.history),
        "groups": str(one.limits.groups),
        "created": format_instant(status.created),
        "silenced until": _instant(status.silenced_until),
        "delivery": status.delivery,
        "error": status.error,
        "state": str(status.state),
    }
    rows = list(properties.items())
    for group in status.groups if one.per else ():
        said = f"{group.state} since {format_instant(group.since)}"
        rows.append((shown_key(group.key or ""), said))
    names, values = zip(*rows, strict=True)
    columns = {"property": pa.array(names, pa.string()), "value": pa.array(values, pa.string())}
    return Outcome(f"alert {one.name}", pa.table(columns))


def _length(micros: int | None) -> str | None:
    return None if micros is None else format_duration(micros)


def _instant(micros: int | None) -> str | None:
    return None if micros is None else format_instant(micros)
