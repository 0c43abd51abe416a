"""The constraint graph of a query: streams, windows between them, and derived windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicegui import ui

from nilometer.model.time import format_duration
from nilometer.server.console.drawing import Drawing, Shape, shape, shortened, svg, table
from nilometer.server.console.graph_layout import Box, frame, lay_out
from nilometer.sql.explain.picture import QueryPicture
from nilometer.sql.explain.picture_graph import (
    ConstraintGraph,
    PicturedBound,
    PicturedStream,
    PicturedWindow,
    later_than,
)

_NOTE: Final = "Point at a stream or a window, or go to it with Tab, to read what it means."
_LETTER: Final = 7.4
"""The usual maximum width of a letter."""
_LONGEST: Final = 24


def constraint_graph(picture: QueryPicture) -> None:
    """Draw the graphs of a picture, each with a table of the same content below."""
    if picture.cycle is not None:
        with ui.element("div").classes("nm-problem").props("role=alert"):
            ui.label(picture.cycle)
    for graph in picture.graphs:
        if graph.title:
            ui.label(graph.title).classes("nm-soft")
        with ui.element("div").classes("nm-graph"):
            with ui.element("div"):
                drawn = draw_graph(graph, is_cycle=picture.cycle is not None)
                Drawing(drawn, _NOTE).classes("nm-scroll")
                Drawing(_legend(graph))
            with ui.element("div"):
                Drawing(_streams_table(graph)).classes("nm-scroll")
                if graph.windows:
                    Drawing(_windows_table(graph)).classes("nm-scroll")
    if not picture.graphs:
        ui.label("This query reads no stream.").classes("nm-soft")


def draw_graph(graph: ConstraintGraph, *, is_cycle: bool = False) -> Shape:
    """The streams as boxes, the windows as labelled lines."""
    names = [one.name for one in graph.streams]
    edges = [(names.index(one.first), names.index(one.second)) for one in graph.windows]
    widths = [(len(window_label(one)) * _LETTER + 16, 24.0) for one in graph.windows]
    nodes, labels = lay_out([_size(one) for one in graph.streams], edges, widths)
    right, down, width, height = frame([*nodes, *labels], 14)
    nodes = [one.moved(right, down) for one in nodes]
    labels = [one.moved(right, down) for one in labels]
    kind = "cycle" if is_cycle else None
    lines = [
        _edge(window, nodes[i], nodes[j], label, kind)
        for window, (i, j), label in zip(graph.windows, edges, labels, strict=True)
    ]
    boxes = [_node(one, box) for one, box in zip(graph.streams, nodes, strict=True)]
    return svg(width, height, "constraint graph", [*lines, *boxes])


def window_label(window: PicturedWindow) -> str:
    """A window in its shortest form; if it has an arrow, it counts from the tail."""
    low, high = _oriented(window)
    if low is None or high is None:
        return f"≤ {format_duration(high)}" if high is not None else f"≥ {_signed(low)}"
    return f"± {format_duration(high)}" if low == -high else f"{_signed(low)} … {_signed(high)}"


def window_words(window: PicturedWindow) -> str:
    """A window as a sentence."""
    phrases = [later_than(one.earlier, one.later, one.limit) for one in window.bounds]
    return ", ".join(phrases)


def _signed(length: int | None) -> str:
    return "any" if length is None else format_duration(length).replace("-", "−")


def _is_turned(window: PicturedWindow) -> bool:
    """Whether the second stream never follows the first."""
    return window.after is not None and window.after.limit <= 0 and not _is_still(window)


def _is_still(window: PicturedWindow) -> bool:
    return all(one.limit == 0 for one in window.bounds)


def _oriented(window: PicturedWindow) -> tuple[int | None, int | None]:
    """The least and greatest difference, counted from the stream that comes first, if one does."""
    after = None if window.after is None else window.after.limit
    before = None if window.before is None else window.before.limit
    if _is_turned(window):
        after, before = before, after
    return None if before is None else -before, after


def _size(stream: PicturedStream) -> tuple[float, float]:
    longest = max(len(line) for line in _lines(stream))
    return max(96.0, longest * _LETTER + 30), 30.0 + 18 * (len(_lines(stream)) - 1)


def _lines(stream: PicturedStream) -> list[str]:
    """The text of a node: its name, its kind, how long its rows are kept."""
    what = "" if stream.relation == stream.name else stream.relation
    lines = [stream.name, " ".join(filter(None, (what, stream.rows))), _kept_shortly(stream)]
    return [shortened(line, _LONGEST) for line in lines if line]


def _kept_shortly(stream: PicturedStream) -> str:
    length = stream.kept.split(" until ")[0].rstrip(":,")
    is_length = length[:1].isdigit()
    return f"kept {length}" if is_length or length.startswith("the last") else length


def _node(stream: PicturedStream, box: Box) -> Shape:
    top = box.y - box.height / 2
    texts = [
        shape("text", line, x=box.x, y=top + 20 + 18 * place, class_=f"line{min(place, 1)}")
        for place, line in enumerate(_lines(stream))
    ]
    outline = shape(
        "rect",
        x=box.x - box.width / 2,
        y=top,
        width=box.width,
        height=box.height,
        rx=10,
    )
    note = _description(stream)
    return shape(
        "g", outline, *texts, class_="node", tabindex=0, role="img", aria_label=note, data_note=note
    )


def _description(stream: PicturedStream) -> str:
    same = stream.relation == stream.name
    parts = [f"Stream {stream.name}" + ("" if same else f", which is {stream.relation}")]
    if stream.rate is not None:
        parts.append(f"{stream.rate:g} rows a second as declared")
    if stream.columns:
        parts.append(f"columns kept: {', '.join(stream.columns)}")
    if stream.kept:
        parts.append(f"rows kept: {stream.kept}")
    return "; ".join(parts)


def _edge(window: PicturedWindow, first: Box, second: Box, label: Box, kind: str | None) -> Shape:
    if _is_turned(window):
        first, second = second, first
    x1, y1 = first.edge_towards(second.x, second.y)
    x2, y2 = second.edge_towards(first.x, first.y)
    parts = [shape("line", x1=x1, y1=y1, x2=x2, y2=y2)]
    if _has_arrow(window):
        parts.append(_arrow(x1, y1, x2, y2))
    back = shape(
        "rect",
        x=label.x - label.width / 2,
        y=label.y - label.height / 2,
        width=label.width,
        height=label.height,
        rx=12,
    )
    text = shape("text", window_label(window), x=label.x, y=label.y + 4.5)
    note = window_note(window)
    return shape(
        "g",
        *parts,
        back,
        text,
        class_=f"edge {kind or window_kind(window)}",
        tabindex=0,
        role="img",
        aria_label=note,
        data_note=note,
    )


def _has_arrow(window: PicturedWindow) -> bool:
    low, high = _oriented(window)
    return low is None or high is None or low != -high


def _arrow(x1: float, y1: float, x2: float, y2: float) -> Shape:
    length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
    ahead, aside = (x2 - x1) / length, (y2 - y1) / length
    back_x, back_y = x2 - 11 * ahead, y2 - 11 * aside
    points = [
        (x2, y2),
        (back_x - 5 * aside, back_y + 5 * ahead),
        (back_x + 5 * aside, back_y - 5 * ahead),
    ]
    return shape("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))


def window_kind(window: PicturedWindow) -> str:
    """Whether a window was written, or is derived from others."""
    if window.is_derived:
        return "derived"
    return "tightened" if window.is_tightened else "written"


def window_note(window: PicturedWindow) -> str:
    """A window in words, with the windows that it is derived from."""
    lines = [f"{window_words(window)} ({window_kind(window)})"]
    lines += [f"{_sentence(one)}, which follows from {_reasons(one)}" for one in _derived(window)]
    return "\n".join(lines)


def _derived(window: PicturedWindow) -> Iterator[PicturedBound]:
    return (one for one in window.bounds if one.follows_from)


def _sentence(bound: PicturedBound) -> str:
    return later_than(bound.earlier, bound.later, bound.limit)


def _reasons(bound: PicturedBound) -> str:
    written = "" if bound.given is None else f"; as written: {format_duration(bound.given)}"
    return " and ".join(bound.follows_from) + written


def _legend(graph: ConstraintGraph) -> Shape:
    words = {
        "written": "as written",
        "derived": "follows from others",
        "tightened": "written, but tightened by others",
    }
    kinds = {window_kind(one) for one in graph.windows}
    swatches = [_swatch(kind, text) for kind, text in words.items() if kind in kinds]
    arrow = "an arrow: how much later the stream at its head may be"
    words_of_arrows = [shape("span", arrow)] if any(map(_has_arrow, graph.windows)) else []
    return shape("p", *swatches, *words_of_arrows, class_="nm-legend nm-small nm-soft")


def _swatch(kind: str, words: str) -> Shape:
    line = Shape("line", {"x1": 0, "y1": 5, "x2": 34, "y2": 5})
    drawn = Shape(
        "svg",
        {"width": 34, "height": 10, "class": "nm-svg", "aria-hidden": "true"},
        (shape("g", line, class_=f"edge {kind}"),),
    )
    return shape("span", drawn, words)


def _streams_table(graph: ConstraintGraph) -> Shape:
    rows = [
        (one.name, one.relation, ", ".join(one.columns) or "—", one.kept or "—")
        for one in graph.streams
    ]
    return table(("Stream", "Is", "Columns", "Rows kept"), rows)


def _windows_table(graph: ConstraintGraph) -> Shape:
    rows = [
        (f"{one.first}, {one.second}", window_words(one), window_kind(one), _because(one))
        for one in graph.windows
    ]
    return table(("Streams", "Window", "Given", "Follows from"), rows)


def _because(window: PicturedWindow) -> str:
    return "; ".join(_reasons(one) for one in _derived(window)) or "—"
