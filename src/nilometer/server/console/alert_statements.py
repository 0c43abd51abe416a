"""The statements that forms of alerts write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nilometer.errors import InputError
from nilometer.server.console.form_statements import option_list, text_literal, written_name


@dataclass(frozen=True)
class AlertForm:
    """The fields of a new alert; empty ones are omitted."""

    name: str
    source: str
    condition: str
    hold: str = ""
    clear: str = ""
    per: tuple[str, ...] = ()
    no_data: str = ""
    unit: str = ""
    """The unit that delivers it; empty: none."""
    options: Mapping[str, str] = field(default_factory=dict)


def create_alert(form: AlertForm) -> str:
    """CREATE ALERT."""
    if not form.name.strip():
        raise InputError("it needs a name")
    if not form.source:
        raise InputError("an alert watches a stream or a query", hint="choose one")
    if not form.condition.strip() and not form.no_data.strip():
        raise InputError(
            "an alert needs a condition, or a time after which there is no data",
            hint="such as temperature > 50, or 1 minute",
        )
    lines = [f"CREATE ALERT {written_name(form.name.strip())} ON {written_name(form.source)}"]
    if form.condition.strip():
        lines.append(f"WHEN {form.condition.strip()}")
    elif form.hold.strip() or form.clear.strip():
        raise InputError(
            "only a condition holds for a time, or clears",
            hint="say when the alert fires, or leave both empty",
        )
    if form.hold.strip():
        lines.append(f"FOR {text_literal(form.hold.strip())}")
    if form.clear.strip():
        lines.append(f"CLEAR WHEN {form.clear.strip()}")
    if form.per:
        lines.append(f"PER ({', '.join(map(written_name, form.per))})")
    if form.no_data.strip():
        lines.append(f"NO DATA FOR {text_literal(form.no_data.strip())}")
    if form.unit:
        lines.append(f"DELIVER TO {form.unit}{option_list(form.options)}")
    return "\n".join(lines)


def silence_alert(name: str, length: str) -> str:
    """ALTER ALERT: silence it for this long; empty: end the silence.

    >>> silence_alert("hot", "1 hour"), silence_alert("hot", "")
    ("ALTER ALERT hot SET (silence = '1 hour')", "ALTER ALERT hot SET (silence = 'off')")
    """
    return f"ALTER ALERT {written_name(name)} SET (silence = {text_literal(length or 'off')})"


def drop_alert(name: str) -> str:
    """DROP ALERT."""
    return f"DROP ALERT {written_name(name)}"
