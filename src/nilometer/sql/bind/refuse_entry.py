"""What cannot stand in FROM, each with its reason."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.mining.registry import MODULES
from nilometer.model.names import nearest
from nilometer.sql.parse.placed_parser import written
from nilometer.sql.parse.places import place_of

_KNOWN: Final = ("this", "expressions", "alias", "db", "catalog", "with_")
SAMPLE: Final = "sample"
"""Where the parser keeps TABLESAMPLE."""
_FILES: Final = (".csv", ".parquet", ".json", ".jsonl", ".ndjson")
_FILE_HINT: Final = (
    'give the file a name, and write FROM A: --table A=a.csv, or db.create_table("A", "a.csv")'
)
_ELSEWHERE: Final = "leave it out, or do it with Spark before the stream is created"


def refuse_entry(entry: exp.Expr, sql: str) -> None:
    """Refuse an entry that is not a stream, table or subquery."""
    if isinstance(entry, exp.Subquery):
        refuse_extras(entry, sql)
        return
    if not isinstance(entry, exp.Table) or not isinstance(entry.this, exp.Identifier):
        raise _no_entry(entry, sql)
    if entry.args.get("db") or entry.args.get("catalog"):
        whole = ".".join(part.name for part in entry.parts)
        raise SqlError(
            "names of streams and tables cannot be qualified",
            place=Place(sql, place_of(entry.parts[0], sql).start, place_of(entry.this, sql).end),
            detail=f"got {whole}",
            hint=file_hint(whole) or f"write {entry.name}",
        )
    refuse_extras(entry, sql)


def _no_entry(entry: exp.Expr, sql: str) -> SqlError:
    if isinstance(entry.this, exp.Func):
        name = written(entry.this).upper()
        return SqlError(
            f"there is no table function {name}",
            place=place_of(entry, sql),
            detail=f"there are {', '.join(MODULES)}",
            hint=_FILE_HINT if name.startswith("READ_") else nearest(name, list(MODULES)),
        )
    return SqlError(
        "FROM may only contain streams, tables and subqueries",
        place=place_of(entry, sql),
        hint="write FROM Camera1 A, Camera2 B",
    )


def file_hint(name: str) -> str | None:
    """What to write for FROM 'a.csv'."""
    return _FILE_HINT if name.lower().removesuffix(".gz").endswith(_FILES) else None


def refuse_extras(entry: exp.Expr, sql: str) -> None:
    """Refuse TABLESAMPLE, PIVOT and the like, which Spark allows after tables."""
    for key, value in entry.args.items():
        if key in _KNOWN or not value:
            continue
        name = {"pivots": "PIVOT", "joins": "a join in brackets"}.get(key, key.upper())
        extra = value[0] if isinstance(value, list) else value
        place = place_of(extra if isinstance(extra, exp.Expr) else entry, sql)
        if key == SAMPLE:
            raise no_sample(place)
        raise SqlError(f"{name} is not supported", place=place, hint=_ELSEWHERE)


def no_sample(place: Place) -> SqlError:
    """The refusal of TABLESAMPLE."""
    return SqlError(
        "TABLESAMPLE takes a percentage of the rows of a stream or a table",
        place=place,
        hint="write FROM A TABLESAMPLE (10 PERCENT), which takes the same rows in every run; "
        "WHERE crc32(CAST(k AS STRING)) % 100 < 10 takes about 10 percent of the keys, and "
        "[ROWS 100] the last rows of a stream",
    )
