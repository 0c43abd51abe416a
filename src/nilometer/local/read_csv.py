"""CSV files as text columns: only files that every reader splits the same way."""

from __future__ import annotations

import csv
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from nilometer.errors import OnlySparkError

_BOM: Final = b"\xef\xbb\xbf"
_FIELD: Final = r'(?:"(?:[^"]|"")*"|[^",]*)'
_LINE: Final = f"^{_FIELD}(?:,{_FIELD})*\r?$"


def read_header(content: bytes) -> list[str]:
    """The names in the first line."""
    text = _line_of(content)
    try:
        names = next(csv.reader([text], strict=True), [])
    except csv.Error:
        names = []
    lowered = [name.lower() for name in names]
    if not text.strip() or "" in names or len(set(lowered)) < len(lowered):
        raise OnlySparkError("the first line does not give every column a name of its own")
    return names


def read_csv(content: bytes, names: list[str]) -> pa.Table:
    """All rows as text; empty values are NULL. An error if Spark might see other rows."""
    content = content.removeprefix(_BOM)
    _require_plain(content)
    parse = pa_csv.ParseOptions(double_quote=True, escape_char=False, newlines_in_values=False)
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    read = pa_csv.ReadOptions(column_names=names, block_size=max(1 << 20, len(content) // 4))
    try:
        table = pa_csv.read_csv(pa.BufferReader(content), read, parse, convert)
    except pa.ArrowInvalid as error:
        raise OnlySparkError("not every line has all columns", detail=str(error)) from None
    rows = table.slice(1)
    _require_no_other_header(rows, names)
    return rows


def _line_of(content: bytes) -> str:
    first, _, _ = content.removeprefix(_BOM).partition(b"\n")
    try:
        return first.decode().removesuffix("\r")
    except UnicodeDecodeError:
        raise OnlySparkError("it is not text in UTF-8") from None


def _require_plain(content: bytes) -> None:
    """Refuse content that readers split differently."""
    if b"\0" in content or content.count(b"\r") != content.count(b"\r\n"):
        raise OnlySparkError("it contains characters that are not text")
    if b'"' not in content:
        return
    try:
        lines = pc.split_pattern(pa.array([content.decode()], pa.large_string()), "\n").values
    except UnicodeDecodeError:
        raise OnlySparkError("it is not text in UTF-8") from None
    quoted = lines.filter(pc.match_substring(lines, '"'))
    if not pc.all(pc.match_substring_regex(quoted, _LINE)).as_py():
        raise OnlySparkError("quotes do not enclose whole values on one line")


def _require_no_other_header(rows: pa.Table, names: list[str]) -> None:
    """Refuse a repeated header line, and a line of blanks: Spark skips some of them."""
    first = rows.column(0)
    again = rows.filter(pc.fill_null(pc.equal(first, names[0]), False))
    if names in [list(row.values()) for row in again.to_pylist()]:
        raise OnlySparkError("the line with the names of the columns comes twice")
    if len(names) == 1 and pc.any(pc.match_substring_regex(first, r"^\s+$")).as_py():
        raise OnlySparkError("it has blank lines")
