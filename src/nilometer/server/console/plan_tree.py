"""The plan of a query as an indented tree."""

from __future__ import annotations

from nicegui import ui

from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.sql.explain.picture import QueryPicture
from nilometer.sql.explain.picture_join import PlanStep


def plan_tree(picture: QueryPicture) -> None:
    """Draw a query's operators as a tree, from the answer down, and where they run."""
    what = {"append": "appends results", "changelog": "emits changes of its answer"}
    if picture.plan is None:
        ui.label("There is no plan: the windows contradict each other.").classes("nm-soft")
        return
    ui.label(f"It {what[picture.emits]}: {', '.join(picture.columns)}").classes("nm-soft")
    Drawing(shape("ul", _step(picture.plan), class_="nm-plan")).classes("nm-scroll")
    stages = (shape("li", line.strip()) for line in picture.stages)
    Drawing(shape("ul", *stages, class_="nm-stages nm-small nm-soft"))


def _step(step: PlanStep) -> Shape:
    details = (shape("li", one) for one in step.details)
    parts = [shape("div", step.head, class_="nm-step")]
    if step.details:
        parts.append(shape("ul", *details, class_="nm-details nm-small nm-soft"))
    if step.inputs:
        parts.append(shape("ul", *map(_step, step.inputs)))
    return shape("li", *parts)
