"""The form of a file's times, as given in --stream: ts[epoch ms], ts[format 'd.M.yyyy']."""

from __future__ import annotations

import re
from typing import Final

from nilometer.errors import InputError
from nilometer.model.time_forms import EpochTimes, TimeForm, WrittenTimes, read_unit

FORMS: Final = "write ts[epoch s], with s, ms, us or ns, or ts[format 'dd-MMM-yyyy H:mm:ss']"
_FORM: Final = re.compile(r"\[\s*(epoch|format)\b\s*([^\]]*)\]\s*$", re.IGNORECASE)


def take_form(text: str) -> tuple[str, TimeForm | None]:
    """The text before the form, and the form, if there is one.

    >>> take_form("a.csv:ts[epoch s]")
    ('a.csv:ts', EpochTimes(unit=<EpochUnit.SECONDS: 's'>))
    """
    match = _FORM.search(text)
    if match is None:
        return text, None
    before, word, inside = text[: match.start()].rstrip(), match[1].lower(), match[2].strip()
    if word == "epoch":
        return before, EpochTimes(read_unit(inside))
    if len(inside) < 2 or inside[0] != inside[-1] or inside[0] not in "'\"":
        raise InputError("cannot read --stream", detail=f"got {text!r}", hint=FORMS)
    return before, WrittenTimes(inside[1:-1])
