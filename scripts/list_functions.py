"""Writes docs/functions.md: every function of Spark, and where it can stand.

python scripts/list_functions.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Final

from nilometer.kernels.functions import (
    bits,
    choices,
    clock_times,
    digests,
    list_order,
    lists,
    maps,
    numbers,
    patterns,
    texts,
    time_units,
    times,
)
from nilometer.kernels.iterate import ITERATIONS
from nilometer.sql.expressions.function_kinds import (
    AGGREGATES,
    GENERATORS,
    TIME_GROUPS,
    WINDOW_FUNCTIONS,
)
from nilometer.sql.expressions.spark_text import safe_functions
from nilometer.sql.expressions.unsafe_functions import UNSAFE, reasons

PAGE: Final = Path(__file__).parents[1] / "docs" / "functions.md"
WORDS: Final = {
    **{name: f"{name}(s)" for name in ("int", "float", "double", "boolean", "string")},
    **{name: f"{name}(s)" for name in ("date", "timestamp")},
    "cast": "CAST(s AS INT)",
    "case": "CASE WHEN o THEN i END",
    "when": "CASE i WHEN 1 THEN 2 END",
    "if": "if(o, i, j)",
    "coalesce": "coalesce(i, j)",
    "ifnull": "ifnull(i, j)",
    "nvl": "nvl(i, j)",
    "nvl2": "nvl2(i, j, i)",
    "nullif": "nullif(i, j)",
    "and": "(o AND o)",
    "or": "o OR o",
    "not": "NOT o",
    "in": "i IN (1, j)",
    "between": "i BETWEEN 1 AND j",
    "div": "i DIV j",
    "struct": "struct(i, s)",
    "extract": "extract(hour FROM t)",
}
"""What is not a row of the table, but evaluated here all the same, by an example."""
_THEMES: Final = {
    "Conditions, choices and casts": [choices],
    "Texts": [texts],
    "Patterns": [patterns],
    "Numbers": [numbers, bits],
    "Dates and times": [times, clock_times, time_units],
    "Arrays, maps and structs": [lists, list_order, maps],
    "Hashes and codes": [digests],
}
_INTRODUCTION: Final = """\
# Functions

Where each function of Spark can stand in a statement. Written by
`python scripts/list_functions.py`.

## Everywhere

These are evaluated by Nilometer itself, with Spark's (ANSI) meaning: over streams and joins,
above aggregates, `DISTINCT` and outer joins, in `HAVING` and `ON`, and without Spark
(`nm.LocalDatabase`). Operators, too: comparisons, `<=>`, `IS DISTINCT FROM`, `+ - * / % div`
(`div` not of DECIMALs), `& | ^ ~ << >>`, `||`, `AND OR NOT`, `IS NULL`, `BETWEEN`, `IN`, `LIKE`,
`ILIKE`, `RLIKE`, `a[i]`, `m['key']`, fields of structs, `CASE`, `CAST`, `TRY_CAST`, `::`.
"""
_LIMITS: Final = """\
What they do not take is left to Spark over a single stream, and refused elsewhere:

- Patterns, formats, units, and digits to round to must be written in the statement, not computed.
- Regular expressions are those that Java and RE2 read in the same way: characters, classes
  (`[a-z]`, `\\d`), groups, `|`, `* + ? {n,m}` and their reluctant forms, `^` and `$` at the ends;
  in `regexp_replace`, `split` and `regexp_count` such that match at least a character.
- Formats of times: `yyyy yy y M MM MMM MMMM d dd D E EEEE H HH h hh k K m mm s ss S… a XXX` and
  texts in quotes; times are read by `yyyy M MM MMM d dd H HH m mm s ss S…`.
- Sessions in UTC or a region such as `Europe/Berlin`, not in an offset such as `+02:00`, for what
  depends on the zone.
- FLOAT is not cast to STRING. A DOUBLE is written as Java 19 and later write it; Java 17 writes
  some very large ones with more digits.
- `CAST('12:34' AS TIMESTAMP)`, a time without a date, is an error here; in Spark it is of today.

Exponents, logarithms and angles may differ from Java's in the last bit, as Java's may from
machine to machine. A value that `repeat`, `lpad`, `sequence` and the like make has at most 1 048
576 characters or items; more is an error in that row.
"""
_OTHERS: Final = {
    "Over a single stream": (
        "Spark computes these: in the list, in `WHERE` and `ON` of streams, and in a subquery of "
        "one stream, `FROM (SELECT *, soundex(s) AS x FROM A [RANGE 1 HOUR]) a`, over which "
        "anything may stand."
    ),
    "Aggregates": (
        "They make one value of a group; [The SQL of Nilometer](sql.md) says which are run."
    ),
    "With OVER": "See [Rows and those before them](sql.md#rows-and-those-before-them).",
    "In GROUP BY": "See [Windows of time](sql.md#windows-of-time).",
}


def page() -> str:
    """The text of the page."""
    parts = [_INTRODUCTION]
    everywhere = set(WORDS)
    for theme, modules in _THEMES.items():
        names = {name for module in modules for name in module.FUNCTIONS if name[0].isalpha()}
        everywhere |= names
        shown = names | set(WORDS) - {"struct", "extract"} if modules == [choices] else names
        shown |= {"extract"} if times in modules else {"struct"} if lists in modules else set()
        parts.append(f"**{theme}**: {_listed(shown)}\n")
    everywhere |= set(ITERATIONS)
    parts.append(f"**Lambdas over items** (`transform(a, x -> x + 1)`): {_listed(ITERATIONS)}\n")
    parts.append(_LIMITS)
    kinds = {
        "Over a single stream": safe_functions()
        - everywhere
        - AGGREGATES
        - WINDOW_FUNCTIONS
        - GENERATORS
        - TIME_GROUPS,
        "Aggregates": AGGREGATES,
        "With OVER": WINDOW_FUNCTIONS,
        "In GROUP BY": TIME_GROUPS,
    }
    for title, names in kinds.items():
        parts.append(f"## {title}\n\n{fill(_OTHERS[title], 100)}\n\n{_listed(names)}\n")
    parts.append(f"## Refused\n\n{_refused()}")
    return "\n".join(parts)


_GENERATORS = (
    "they make several rows of one. Arrays and maps are taken apart in FROM: `UNNEST`, "
    "`LATERAL VIEW`; or by `explode` or `posexplode` alone in the list."
)


def _refused() -> str:
    lines = [f"- {_listed(GENERATORS)}: {_GENERATORS}"]
    lines += [f"- {_listed(names)}: {why}." for names, why in reasons()]
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in sorted(names))
    return fill(text, 100, break_on_hyphens=False, break_long_words=False)


def named() -> frozenset[str]:
    """All functions that Spark is known to have."""
    return safe_functions() | UNSAFE


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
