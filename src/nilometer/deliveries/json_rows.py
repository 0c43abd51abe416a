"""Results as JSON, each with its id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from nilometer.deliveries.unit import ID, Chunk
from nilometer.kernels.json_values import rows_of


def row_texts(chunk: Chunk) -> Iterator[str]:
    """The rows of a chunk as JSON objects, each with its id."""
    for at, row in enumerate(rows_of(chunk.rows)):
        yield dump({**row, ID: chunk.row_id(at)})


def row_bytes(chunk: Chunk) -> list[int]:
    """How many bytes each row takes, with a byte between rows."""
    return [len(text.encode()) + 1 for text in row_texts(chunk)]


def chunk_text(chunk: Chunk) -> str:
    """A chunk as one JSON object."""
    header = dump({"delivery": chunk.delivery, "query": chunk.query, "id": chunk.id})
    return f'{header[:-1]},"rows":[{",".join(row_texts(chunk))}]}}'


def dump(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
