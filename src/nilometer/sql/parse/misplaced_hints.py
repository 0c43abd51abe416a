"""Hints in positions where they have no effect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

from nilometer.errors import Place, SqlSyntaxError

_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def refuse_misplaced_hints(sql: str, tokens: Sequence[Token]) -> None:
    """Refuse hints that do not follow a SELECT: the tokenizer treats them as comments."""
    starts = [0, *(token.end + 1 for token in tokens)]
    ends = [*(token.start for token in tokens), len(sql)]
    for start, end in zip(starts, ends, strict=True):
        for comment in _COMMENT.finditer(sql, start, end):
            if comment[0].startswith("/*+"):
                raise SqlSyntaxError(
                    "a hint is not allowed here",
                    place=Place(sql, *comment.span()),
                    hint="write one hint, right after the first SELECT, or leave it out",
                )
