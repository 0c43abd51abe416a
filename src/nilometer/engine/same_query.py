"""Checks that stored state belongs to a query as it is now."""

from __future__ import annotations

from typing import Any, Final

from nilometer.errors import CheckpointError

PREDICATES: Final = "predicates"
"""Their key in a query's description; the parser's way to write them varies by release."""
STAGES: Final = "stages"
"""The key in a description of the numbers of buckets of all stages."""
FORMAT: Final = 1
"""The format of manifests, to be raised when a release cannot use the state of earlier ones."""


def check_same_query(manifest: dict[str, Any], query: dict[str, Any], buckets: int) -> None:
    """Refuse state of another query, release or number of buckets."""
    form = manifest.get("format", 1)  # which the first release did not store
    if form != FORMAT:
        raise CheckpointError(
            "this checkpoint was written by another release of Nilometer",
            detail=f"its state has format {form}, this release reads {FORMAT}",
            hint="go on with that release, or start with an empty checkpoint",
        )
    if manifest["buckets"] != buckets:
        raise CheckpointError(
            f"this checkpoint was written with {manifest['buckets']} buckets, not {buckets}",
            hint=f"pass buckets={manifest['buckets']}, or start with an empty checkpoint",
        )
    for part in {**manifest["query"], **query}:
        before, now = manifest["query"].get(part), query.get(part)
        if before != now and not (part == PREDICATES and _say_the_same(before, now)):
            raise CheckpointError(
                f"this checkpoint belongs to another query: its {part} differ",
                detail=f"the checkpoint has {before}; the query has {now}",
                hint="start a changed query with an empty checkpoint",
            )


def _say_the_same(before: list[str] | None, now: list[str] | None) -> bool:
    """Whether predicates differ only in how parser releases write them."""
    from nilometer.sql.expressions.scalars import respell  # noqa: PLC0415 - workers need no parser

    return [respell(one) for one in before or ()] == [respell(one) for one in now or ()]
