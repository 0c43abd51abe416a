"""What is written to the files of a bucket for its queries."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nilometer.engine.bucket_files import BucketFolder, Extent, KeptQuery, QueryEntry, read_state
from nilometer.engine.held_queries import HeldQuery
from nilometer.engine.query_run import RunOutput
from nilometer.log.frame_format import encode_frame
from nilometer.log.parts import pieces


def query_entry(
    held: HeldQuery, answer: RunOutput | None, kept: KeptQuery | None, stands_for: str | None
) -> QueryEntry:
    """The entry of a query's micro-batch; `kept` is what the files hold of it.

    `stands_for` is the query with which its sub-plan is stored, if that is so already.
    """
    subplan, query = held.run.subplan, held.entry.query
    report, frames = _report(held, answer) if answer is not None else ({}, [])
    report |= {"positions": [one.to_json() for one in subplan.positions], "subplan": subplan.tag}
    state: dict[str, Any] = {
        "results": held.results,
        "watermark": held.watermark,
        "counted": held.run.counted,
    }
    entry = QueryEntry(query, frames=frames, report=report, subplan=stands_for)
    if stands_for is None:
        state["run"] = subplan.snapshot()
        entry.chunks, entry.gone = subplan.changes(kept)
        subplan.holder, subplan.is_waiting = query, True
    entry.state = json.dumps(state, separators=(",", ":")).encode()
    if held.number < 0:
        entry.about = json.dumps(held.run.about).encode()
    return entry


def _report(held: HeldQuery, answer: RunOutput) -> tuple[dict[str, Any], list[bytes]]:
    """What is reported of a micro-batch, and its results as frames of their log."""
    report = {
        "metrics": held.run.metrics,
        "millis": round(1000 * held.seconds, 3),
        "behind": answer.is_behind,
    }
    has_news = answer.watermark is not None and answer.watermark != held.watermark
    if not (answer.rows or has_news or answer.errors.count):
        return report, []
    held.results += 1
    held.watermark = answer.watermark if has_news else held.watermark
    report |= {
        "key": held.results,
        "watermark": answer.watermark,
        "rows": sum(map(len, answer.rows)),
        "errors": answer.errors.to_json(),
    }
    return report, _frames(held, answer, (held.entry.query, held.results))


def _frames(held: HeldQuery, answer: RunOutput, key: tuple[str, int]) -> list[bytes]:
    """Results as frames of their log, the last of which holds the key."""
    hosted = held.run.hosted
    time, compression = hosted.plan.layout.time, hosted.compression
    some = [piece for rows in answer.rows for piece in pieces(rows)]
    frames = [encode_frame(one, time, compression) for one in some[:-1]]
    frames.append(encode_frame(some[-1] if some else None, time, compression, batch=key))
    return [b"".join(bytes(chunk) for chunk in one.chunks) for one in frames]


def whole_entries(
    entries: Sequence[QueryEntry],
    kept: Mapping[str, KeptQuery],
    wanted: Collection[str],
    files: BucketFolder,
) -> list[QueryEntry]:
    """Entries with the state of all queries that are wanted, with what was done to some of them."""
    by_query = {one.query: one for one in entries}
    storing: dict[Extent | None, str] = {}
    in_order = sorted(kept.items(), key=lambda one: one[1].subplan != one[1].state)
    for query, old in in_order:
        if query not in wanted:
            continue
        new = by_query.setdefault(query, QueryEntry(query))
        new.about = new.about if new.about is not None else old.about
        if new.state is not None:
            if new.subplan is None:
                chunks = {name: one for name, one in old.chunks.items() if name not in new.gone}
                new.chunks = {**chunks, **new.chunks}
            continue
        if old.state is not None:
            if storing.setdefault(old.subplan, query) == query:
                new.state, new.chunks = read_state(files, old), {**old.chunks}
            else:
                new.state, new.subplan = old.state, storing[old.subplan]
        if old.failed is not None and not new.report:
            new.report = {"attempt": old.failed}
    for one in by_query.values():
        if one.subplan is not None:  # whoever it names may name another one in this file
            one.subplan = by_query[one.subplan].subplan or one.subplan
    return list(by_query.values())
