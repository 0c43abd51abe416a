"""A guard before Spark: text that names anything but safe functions is not sent.

What is sent is one expression. It is read here by the rules of Spark's own lexer, not by those of
the library that wrote it: a text in which a string ends earlier for Spark than for its writer is
seen as Spark sees it. No word that begins a query can be in it, no comment, no name with a dot
before brackets, and no function that is neither known to be safe nor called by the statement.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from importlib.resources import files
from typing import Final

from nilometer.errors import SqlError

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?!\w))
    | (?P<name>[^\W\d]\w*|\d+[^\W\d]\w*)
    | (?P<bad>--|/\*|\*/|\|>)
    | (?P<operator><=>|<=|>=|<>|!=|==|\|\||<<|>>>|>>|->|=>|[-+*/%&|^~!=<>])
    | (?P<open>[(\[])
    | (?P<close>[)\]])
    | (?P<other>[,.:])
    """,
    re.VERBOSE | re.DOTALL,
)
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]*")
_QUERY_WORDS: Final = frozenset(
    {
        *("select", "from", "with", "table", "values", "insert", "using", "lateral", "join"),
        *("over", "union", "intersect", "except"),
    }
)
"""Words that begin or continue something other than an expression."""
_WITH_FROM: Final = frozenset({"extract", "trim", "substring", "substr", "overlay"})
"""EXTRACT(DAY FROM x) and the like are calls; IS DISTINCT FROM compares."""
_CALLED_WITHOUT_BRACKETS: Final = frozenset({"current_user", "session_user", "user", "_metadata"})
"""They reveal facts about the machine; columns of these names are always quoted."""
_BEFORE_BRACKETS: Final = frozenset(
    {
        *("and", "or", "not", "in", "between", "like", "ilike", "rlike", "any", "all", "some"),
        *("case", "when", "then", "else", "cast", "try_cast", "distinct", "filter", "where"),
        *("group", "extract", "div", "regexp", "trim", "overlay", "decimal", "char", "varchar"),
    }
)
"""Words of expressions and types that may precede brackets."""


@lru_cache(maxsize=1)
def safe_functions() -> frozenset[str]:
    """Spark's functions that compute with values alone, in lower case."""
    listed = (
        files("nilometer.sql.expressions")
        .joinpath("safe_functions.txt")
        .read_text(encoding="utf-8")
    )
    return frozenset(listed.split())


def require_safe_text(text: str, called: Collection[str] = ()) -> str:
    """The text, if it is one expression over safe functions and those that a statement calls."""
    problem = _problem(text, frozenset(called))
    if problem is not None:
        raise SqlError(
            "this cannot be passed to Spark",
            detail=problem,
            hint="write the expression in another way; if it is harmless, please report it",
        )
    return text


@lru_cache(maxsize=256)
def _problem(text: str, called: frozenset[str]) -> str | None:
    """The problem with a text; None if there is none."""
    tokens = _tokens(text)
    brackets: list[str] = []
    for place, (kind, word) in enumerate(tokens):
        before = tokens[place - 1] if place else ("", "")
        behind = tokens[place + 1] if place + 1 < len(tokens) else ("", "")
        match kind:
            case "bad":
                return f"it has {word[:20]!r}"
            case "string" if before[0] == "name" and not _may_precede(before[1], word):
                return f"it has {before[1]} before a string"
            case "open":
                brackets.append(before[1].lower() if before[0] == "name" and word == "(" else "")
                if word == "(" and before[0] in ("quoted", "string"):  # either may be a name
                    return f"it calls {before[1]}"
            case "close":
                if not brackets:
                    return "it closes a bracket that was not opened"
                brackets.pop()
            case "name":
                name = word.lower()
                if name == "from" and (
                    before[1].lower() == "distinct" or (brackets and brackets[-1] in _WITH_FROM)
                ):
                    continue
                if behind == ("open", "("):
                    if not _may_be_called(name, before[1], called):
                        return f"it calls {word}"
                elif name in _QUERY_WORDS | _CALLED_WITHOUT_BRACKETS and before[1] != ".":
                    return f"it has the word {word.upper()}"
    return "it does not close its brackets" if brackets else None


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            return [("bad", text[place:])]
        if match.lastgroup != "space":
            tokens.append((match.lastgroup, match[0]))
        place = match.end()
    return tokens


def _may_precede(name: str, string: str) -> bool:
    """Whether a word may precede a string: X'00' is bytes, R'\\' would be another language."""
    if name.lower() == "x":
        return _HEXADECIMAL.fullmatch(string[1:-1]) is not None
    return name.lower() != "r"


def _may_be_called(name: str, before: str, called: frozenset[str]) -> bool:
    if before == ".":
        return False
    return name in _BEFORE_BRACKETS or name in safe_functions() or name in called
