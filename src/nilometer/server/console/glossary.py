"""The words of Nilometer, each with one sentence; docs/glossary.md is generated from them."""

from __future__ import annotations

from typing import Final

from nilometer.server.console.drawing import Shape, shape

TERMS: Final[dict[str, str]] = {
    "alert": "A notification that is sent when rows of a stream, or the answer of a query, meet a "
    "condition.",
    "answer": "The rows that a query gives for what its windows hold at one instant.",
    "append": "Results that are only ever added to: a row that was emitted stays valid.",
    "backpressure": "A sensor waits before it sends more, because its stream's log has no room.",
    "bucket": "A part of a query's work, done by one core: rows with the same key share one.",
    "changelog": (
        "Results that are changes of an answer: a row comes with _diff +1 and goes with _diff -1; "
        "added up they are the current answer."
    ),
    "checkpoint": "What a query has stored on disk so that it resumes where it left off after a "
    "crash.",
    "compaction": "Many small files are rewritten as one, with the same content.",
    "current answer": "What all changes of a changelog up to now add up to.",
    "dead letter": (
        "A reading that could not be stored, or a row that a query could not compute, kept with "
        "the reason."
    ),
    "delivery": "Results of a query that are sent to another system as they arrive.",
    "emit": "Output a row of results, or a change of an answer.",
    "engine": "What runs the queries: one that most of them share, or one of a query's own.",
    "event time": "When something was measured, as the reading itself says.",
    "health": "The state of a query, micro-batch by micro-batch, over the last ten minutes.",
    "history": "How long rows are kept after every reader has read them.",
    "hot key": "A key with so many of the rows that its bucket does most of the work.",
    "idle": "How long a stream may be silent before the others stop waiting for it.",
    "lag": "How far something is behind: by the clock, or in rows that are not delivered yet.",
    "late row": "A row that is older than its stream's watermark when it arrives; it is dropped.",
    "lateness": "How far out of order the rows of a stream may arrive and still count.",
    "log": "The file that stores the rows of a stream or a query in the order they arrived.",
    "micro-batch": "The rows of a short interval, processed together.",
    "notify": "Report to people or programs that something has happened: what an alert does.",
    "offset": "The position in a log up to which a reader has read.",
    "operator": "A step of a query that keeps state, such as a join, an aggregate or a pattern.",
    "query": "A SELECT that is stored under a name and runs for as long as its streams do.",
    "reader": "A query, delivery or alert that reads a log, from an offset of its own.",
    "reading": "One measurement that a sensor has sent: a row of its stream.",
    "reserve": "Set a slot, memory or disk space aside for one owner before it is needed.",
    "retention": "The rules by which old data is deleted so that the disk does not fill up.",
    "retract": "Take back a row that no longer holds: a change with _diff -1.",
    "scope": "What a token allows: read looks, write runs queries, admin may do everything.",
    "sensor": "A source of readings: an address that the server asks, or that sends to it.",
    "sensor table": "Many sensors of one kind, a row for each, read as one stream.",
    "silent": "A sensor that is connected but has sent nothing for a while.",
    "sink": "Where results go: a log, a file, a broker, another program.",
    "stage": "A part of a query between two exchanges of rows among its buckets.",
    "stalled": "A query that runs but makes no progress, because something it reads does not "
    "advance.",
    "state": "What a query must keep in order to answer: rows in its windows, sums, partial "
    "matches.",
    "stream": "Rows that keep coming, each with its time.",
    "stream type": "How a stream's readings come: http, mqtt, tcp, file, synthetic and others.",
    "temporary query": "A query that is dropped when nobody has followed it for a minute.",
    "time window": "A span of event time, such as each minute, whose rows are grouped: "
    "TUMBLE, HOP, SESSION.",
    "token": "A secret that identifies a user or program to the server.",
    "unit": "A function that converts readings before they are stored, or that delivers results.",
    "watermark": "The time up to which all rows are assumed to have arrived: answers are complete.",
    "window": "The span of time within which rows count or belong together.",
    "write-ahead": "Rows that are acknowledged on the server's disk, and on their way to an object "
    "store.",
}


def term(name: str, words: str | None = None) -> Shape:
    """A word with a mark that explains it, by pointer, keyboard or touch."""
    text = f"{name}: {TERMS[name]}"
    mark = shape(
        "span", "?", class_="nm-term", tabindex=0, role="note", aria_label=text, data_tip=text
    )
    return shape("span", words or name, mark, class_="nm-termed")
