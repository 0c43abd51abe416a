"""All words and what they mean, on one page."""

from __future__ import annotations

from nilometer.server.console.access import Console
from nilometer.server.console.drawing import Drawing, shape
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.glossary import TERMS
from nilometer.server.console.styles import add_styles


def add_glossary_page(console: Console) -> None:
    """`/console/glossary`."""

    @console_page("/console/glossary")
    async def glossary_page() -> None:
        add_styles()
        with page_frame("Words", console):
            entries = (
                one
                for name, meaning in TERMS.items()
                for one in (shape("dt", name, id_=name.replace(" ", "-")), shape("dd", meaning))
            )
            heading = shape("h1", "What the words mean", class_="nm-title")
            card = shape(
                "section", heading, shape("dl", *entries), class_="nm-card nm-pad nm-words"
            )
            Drawing(card)
