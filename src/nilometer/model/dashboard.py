"""Dashboards: named sets of panels that show stored rows; valid once built."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.model.names import nearest

COLUMNS: Final = 12
"""The number of columns in the grid of a dashboard."""
MOST_PANELS: Final = 60
MOST_TEXT: Final = 20_000
"""The maximum length of a SELECT, in characters."""
_MOST_TITLE: Final = 200
_MOST_LINES: Final = 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


class PanelKind(StrEnum):
    """How a panel shows its rows."""

    LINE = "line"
    BAR = "bar"
    STAT = "stat"
    TABLE = "table"
    HEAT = "heat map"
    MAP = "map"


class SourceKind(StrEnum):
    """Where the rows of a panel come from."""

    QUERY = "query"
    STREAM = "stream"
    SELECT = "select"


class Combine(StrEnum):
    """How several values at the same place in a chart are combined."""

    ALL = "all"
    """All are kept; if too many, the first, last, lowest and highest of each place."""
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    LAST = "last"


@dataclass(frozen=True)
class Source:
    """A query or stream by name, or the text of a SELECT."""

    kind: SourceKind
    text: str

    def __post_init__(self) -> None:
        limit = MOST_TEXT if self.kind is SourceKind.SELECT else _MOST_TITLE
        _require_text(self.text, "the source of a panel", limit)
        if not self.text.strip():
            raise InputError(
                "a panel needs a source", hint="name a query or a stream, or write a SELECT"
            )


@dataclass(frozen=True)
class Panel:
    """One panel: which columns of its source it shows, and how."""

    title: str
    kind: PanelKind
    source: Source
    x: str | None = None
    """None: the time of the rows."""
    y: tuple[str, ...] = ()
    """For a table: the columns shown, or none for all."""
    series: str | None = None
    """The column whose values each get their own line, colour, row or place."""
    value: str | None = None
    """For a map: the column that gives places their colours."""
    combine: Combine = Combine.ALL
    unit: str = ""
    width: int = COLUMNS // 2

    def __post_init__(self) -> None:
        _require_title(self.title, "a panel")
        _require_text(self.unit, "the unit of a panel", 40)
        for name in (self.x, self.series, self.value, *self.y):
            if name is not None:
                _require_text(name, "the name of a column", _MOST_TITLE)
                if not name.strip():
                    raise InputError("the name of a column is empty", hint="leave it out")
        if not 1 <= self.width <= COLUMNS:
            raise InputError(
                f"the width of a panel is 1 to {COLUMNS} columns", detail=f"got {self.width}"
            )
        if len(self.y) > _MOST_LINES:
            raise InputError(f"a panel shows at most {_MOST_LINES} columns")
        self._require_columns()

    def _require_columns(self) -> None:
        """Refuse a panel without the columns that its kind requires."""
        kind = self.kind
        if kind is PanelKind.TABLE:
            return
        if kind is PanelKind.MAP and (self.x is None or len(self.y) != 1):
            raise InputError(
                "a map needs a column for x and one for y",
                hint="such as longitude and latitude, or where a sensor stands in a plan",
            )
        if kind is PanelKind.HEAT and self.series is None:
            raise InputError("a heat map needs a column for its rows", hint="give series")
        if not self.y and self.combine is not Combine.COUNT:
            raise InputError(
                f"a panel of the kind {kind} needs a column of numbers",
                hint="give y, or combine rows by counting them",
            )
        if kind is PanelKind.HEAT and len(self.y) > 1:
            raise InputError("a heat map shows one column of numbers")

    @classmethod
    def from_json(cls, content: Any, where: str = "the panel") -> Panel:
        """A panel from JSON; whatever is missing, unknown or of the wrong type is refused."""
        fields = _object(content, where, _PANEL_KEYS)
        sources = [one for one in SourceKind if fields.get(one.value) is not None]
        if len(sources) != 1:
            raise InputError(
                f"{where} needs one source",
                detail=f"it has {', '.join(sources) or 'none'}",
                hint="give query, stream or select",
            )
        text = _text(fields, sources[0].value, where)
        y = fields.get("y") or []
        if isinstance(y, str):
            y = [y]
        if not isinstance(y, list) or not all(isinstance(one, str) for one in y):
            raise InputError(f"y of {where} is not a list of columns", detail=f"got {y!r:.80}")
        width = fields.get("width", COLUMNS // 2)
        if not isinstance(width, int) or isinstance(width, bool):
            raise InputError(f"width of {where} is not a whole number", detail=f"got {width!r:.80}")
        return cls(
            _text(fields, "title", where),
            PanelKind(_one_of(fields.get("kind"), PanelKind, f"the kind of {where}")),
            Source(sources[0], text),
            _optional(fields, "x", where),
            tuple(y),
            _optional(fields, "series", where),
            _optional(fields, "value", where),
            Combine(_one_of(fields.get("combine") or Combine.ALL, Combine, f"combine of {where}")),
            _optional(fields, "unit", where) or "",
            width,
        )

    def to_json(self) -> dict[str, Any]:
        """The panel as JSON, without what is empty."""
        content: dict[str, Any] = {
            "title": self.title,
            "kind": self.kind.value,
            self.source.kind.value: self.source.text,
            "x": self.x,
            "y": list(self.y),
            "series": self.series,
            "value": self.value,
            "combine": None if self.combine is Combine.ALL else self.combine.value,
            "unit": self.unit,
        }
        return {key: one for key, one in content.items() if one} | {"width": self.width}


@dataclass(frozen=True)
class Dashboard:
    """Panels under a name; instants are in microseconds since 1970."""

    name: str
    title: str
    panels: tuple[Panel, ...] = ()
    version: int = 0
    """Grows with every change; 0: it is not stored yet."""
    created: int = 0
    changed: int = 0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                "the name of a dashboard is part of its URL",
                detail=f"got {self.name!r:.100}",
                hint="write it with letters, digits, hyphens and underscores, at most 60",
            )
        _require_title(self.title, "a dashboard")
        if len(self.panels) > MOST_PANELS:
            raise InputError(
                f"a dashboard has at most {MOST_PANELS} panels", detail=f"got {len(self.panels)}"
            )

    @classmethod
    def from_json(cls, content: Any, name: str | None = None) -> Dashboard:
        """A dashboard from its export, under its own name or another."""
        fields = _object(content, "the dashboard", ("name", "title", "panels"))
        panels = fields.get("panels", [])
        if not isinstance(panels, list):
            raise InputError("the panels of a dashboard are a list", detail=f"got {panels!r:.80}")
        return cls(
            name or _text(fields, "name", "the dashboard"),
            _text(fields, "title", "the dashboard"),
            tuple(Panel.from_json(one, f"panel {i}") for i, one in enumerate(panels, 1)),
        )

    @classmethod
    def from_text(cls, text: str, name: str | None = None) -> Dashboard:
        """A dashboard from the text of a file."""
        try:
            return cls.from_json(json.loads(text), name)
        except (ValueError, RecursionError) as error:
            raise InputError(
                "this is not a dashboard: it cannot be read as JSON", detail=str(error)[:200]
            ) from None

    def to_json(self) -> dict[str, Any]:
        """The dashboard as JSON, to be exported and imported elsewhere."""
        panels = [one.to_json() for one in self.panels]
        return {"name": self.name, "title": self.title, "panels": panels}


def name_for(title: str) -> str:
    """A name suggested by a title.

    >>> name_for("Hall & yard: today"), name_for("Größe"), name_for("…")
    ('hall-yard-today', 'gr-e', 'dashboard')
    """
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return words[:60].rstrip("-") or "dashboard"


_PANEL_KEYS: Final = (
    *("title", "kind", "query", "stream", "select"),
    *("x", "y", "series", "value", "combine", "unit", "width"),
)


def _object(content: Any, where: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise InputError(f"{where} is not a JSON object", detail=f"got {content!r:.80}")
    for key in content:
        if key not in known:
            raise InputError(
                f"{where} has no field {key!r:.60}",
                hint=nearest(str(key), known) or f"it may have {', '.join(known)}",
            )
    return content


def _text(fields: Mapping[str, Any], key: str, where: str) -> str:
    text = fields.get(key)
    if not isinstance(text, str):
        raise InputError(
            f"{where} needs a text for {key}",
            detail=None if text is None else f"got {text!r:.80}",
        )
    return text


def _optional(fields: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if fields.get(key) in (None, "") else _text(fields, key, where)


def _one_of(value: Any, known: type[StrEnum], what: str) -> str:
    names = [one.value for one in known]
    if value not in names:
        raise InputError(
            f"{what} is not known",
            detail=f"got {value!r:.80}",
            hint=f"it may be {', '.join(names)}",
        )
    return str(value)


def _require_title(title: str, what: str) -> None:
    _require_text(title, f"the title of {what}", _MOST_TITLE)
    if not title.strip():
        raise InputError(f"{what} needs a title")


def _require_text(text: str, what: str, limit: int) -> None:
    if len(text) > limit:
        raise InputError(
            f"{what} is too long", detail=f"it has {len(text)} characters, not {limit}"
        )
    if "\0" in text or any("\ud800" <= one <= "\udfff" for one in text):
        raise InputError(f"{what} is not valid text", hint="leave out NUL and lone surrogates")
