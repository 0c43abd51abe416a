"""The names of a log's objects in an object store, which carry the term of their writer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nilometer.log.segment_files import is_packed_name
from nilometer.log.segment_format import segment_name

WHOLE: Final = ".whole"
_OBJECT: Final = re.compile(r"(\d{12})(?:-(\d{8}-[0-9a-f]{16}))?\.seg")


def object_name(number: int, term: str) -> str:
    """The object of a segment; logs of the first release used the same writer's name for all."""
    return f"{number:012d}-{term}.seg" if term else segment_name(number)


def parsed_name(name: str) -> tuple[int, str] | None:
    """The number of a segment and the term of its writer; None: it is another object."""
    match = _OBJECT.fullmatch(name)
    return (int(match[1]), match[2] or "") if match else None


def counts(name: str, objects: Mapping[str, int]) -> bool:
    """Whether an object that is not a segment itself counts: packed segments do once complete."""
    if is_packed_name(name):
        return name + WHOLE in objects
    return parsed_name(name) is None and not name.endswith(WHOLE)
