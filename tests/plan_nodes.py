"""A small catalog for tests of plans in changelog mode, and ways to inspect their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from nilometer.local.database import LocalDatabase
from nilometer.sql.plan.changes_plan import (
    Block,
    ChangesPlan,
    Node,
    runs,
)

SECOND = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("ts", TIMESTAMP), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])


def make_database() -> LocalDatabase:
    """Streams A, B, C and a static table W, all empty."""
    made = LocalDatabase(buckets=4)
    for name in ("A", "B", "C"):
        made.create_stream(name, SCHEMA.empty_table(), time="ts")
    made.create_table("W", pa.schema([("k", pa.int32()), ("why", pa.string())]).empty_table())
    return made


def root_of(db: LocalDatabase, sql: str) -> Node:
    plan = db.plan(sql)
    assert isinstance(plan, ChangesPlan)
    return plan.root


def as_a(kind: type, node: Node) -> Any:
    """The node, if it or its operator is of this kind."""
    assert isinstance(node, kind) or runs(node, kind), node
    return node


def names(node: Node) -> list[str]:
    return [one.name for one in node.columns]


def nodes_of(node: Node) -> Iterator[Node]:
    yield node
    for one in node.inputs:
        yield from nodes_of(one)


def lifetimes(db: LocalDatabase, sql: str) -> dict[str, int]:
    """How many seconds the rows of each stream stay, by stream name."""
    return {
        " ".join(one.streams): one.length // SECOND
        for node in nodes_of(root_of(db, sql))
        if isinstance(node, Block)
        for one in node.lifetimes
    }
