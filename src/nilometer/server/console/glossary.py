"""The words of Nilometer, each with one sentence; docs/glossary.md is written from them."""

from __future__ import annotations

from typing import Final

from nilometer.server.console.drawing import Shape, shape

TERMS: Final[dict[str, str]] = {
    "alert": "What is told when rows of a stream, or the answer of a query, say so.",
    "append": "Results that are only ever added to: what was once told stays true.",
    "backpressure": "A sensor waits before it sends more, because its stream's log has no room.",
    "changelog": (
        "Results that are changes of an answer: a row comes with _diff +1 and goes with _diff -1; "
        "added up they are the current answer."
    ),
    "checkpoint": "What a query has kept on disk so that after a crash it goes on where it was.",
    "compaction": "Many small files are written again as one, with the same content.",
    "current answer": "What all changes of a changelog up to now add up to.",
    "dead letter": (
        "A reading that could not be stored, or a row that a query could not compute, kept with "
        "the reason."
    ),
    "delivery": "Results of a query that are handed on to another system as they come.",
    "engine": "What runs the queries: one that most of them share, or one that a query has alone.",
    "event time": "When something was measured, as the reading itself says.",
    "health": "How a query has been doing, micro-batch by micro-batch, for the last ten minutes.",
    "history": "For how long rows are kept after everybody has read them.",
    "idle": "After how long a silence a stream no longer holds up the others.",
    "lag": "How far something is behind: by the clock, or in rows that are not delivered yet.",
    "late row": "A row that is older than its stream's watermark when it comes; it is left out.",
    "lateness": "How much out of order the rows of a stream may come and still count.",
    "log": "The file in which the rows of a stream or a query are stored in the order they came.",
    "micro-batch": "The rows of a short while, worked through in one go.",
    "offset": "The place in a log up to which somebody has read.",
    "query": "A SELECT that is kept under a name and goes on for as long as its streams do.",
    "reading": "One measurement that a sensor has sent: a row of its stream.",
    "retention": "What is deleted after a while so that the disk does not fill up.",
    "retract": "Take back a row that no longer holds: a change with _diff -1.",
    "scope": "What a token allows: read looks, write runs queries, admin may do everything.",
    "sensor": "A source of readings: an address that the server asks, or that sends to it.",
    "sensor table": "Many sensors of one kind, a row for each, read as one stream.",
    "silent": "A sensor that is connected but has sent nothing for a while.",
    "sink": "Where results go: a log, a file, a broker, another program.",
    "stalled": "A query that runs but gets no further, since something it reads does not move.",
    "state": "What a query must keep to answer: rows in its windows, sums, patterns begun.",
    "stream": "Rows that keep coming, each with its time.",
    "stream type": "How a stream's readings come: http, mqtt, tcp, file, synthetic and others.",
    "temporary query": "A query that is dropped when nobody has followed it for a minute.",
    "token": "A secret text that stands for somebody who may use the server.",
    "watermark": "The time up to which everything is believed to have come: answers are complete.",
    "window": "The span of time within which rows count or belong together.",
}


def term(name: str, words: str | None = None) -> Shape:
    """A word with a mark beside it that tells what it means, by pointer, keyboard or touch."""
    told = f"{name}: {TERMS[name]}"
    mark = shape(
        "span", "?", class_="nm-term", tabindex=0, role="note", aria_label=told, data_tip=told
    )
    return shape("span", words or name, mark, class_="nm-termed")


def as_markdown() -> str:
    """The text of docs/glossary.md."""
    lines = [
        "# Glossary",
        "",
        "One word for each concept. The console shows these sentences beside the words.",
        "",
        "| word | meaning |",
        "|---|---|",
        *(f"| {name} | {meaning} |" for name, meaning in TERMS.items()),
        "",
    ]
    return "\n".join(lines)
