"""Files as this process reads them, against what Spark reads: the same columns and values."""

from __future__ import annotations

import csv
import gzip
import io
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nilometer.commands.options import Source
from nilometer.commands.spark_files import read_static
from nilometer.errors import NilometerError, OnlySparkError, SchemaError
from nilometer.local.find_files import find_files
from nilometer.local.read_files import read_files
from nilometer.local.text_columns import read_texts, type_of_texts
from nilometer.spark.types import arrow_types

CELLS = (
    *("", "1", "-7", "+5", "007", "2147483648", "-9223372036854775808", "99999999999999999999"),
    *("1.5", "-.5", "1.", "1e5", "1.5e1", "1.50", "1E-7", "-0.0", "1e400", "1d", "2.0f", "0x1F"),
    *("NaN", "nan", "Inf", "-Infinity", "true", "FALSE", "True", "yes", "null", "NULL", "abc"),
    *("2026-01-01", "2026-1-1", "2026-02-30", "2026-13-01", "2026", "2026-01", "1600-02-29"),
    *("2026-01-01 00:00:00", "2026-01-01T23:59:59.5", "2026-01-01 00:00:00.1234567"),
    *("2026-01-01T00:00:00Z", "2026-01-01 10:00:00+05:30", "2026-01-01T00:00:00-17:59"),
    *("2026-01-01 24:00:00", "2026-01-01 00:00", "2026-01-01 00:00:00 Europe/Berlin"),
    *("12:00:00", "T12:00", "now", "epoch", " 1", "1 ", "\t", "12 Main St", "3e", "1.2.3"),
    *("192.168.0.1", "é", "日本", "_x", "#5", "$1", "1-2", "a,b", 'say "so"', "'", "-", "+"),
    *("Tuesday", "t1", "infinite", "0a", "12abc", "5 km", "1_000", "1,000", "(1)", "5%"),
)


def columns_of_cells(seed: int, width: int, height: int) -> list[list[str]]:
    """Columns of which most mix a few kinds of values."""
    chosen = random.Random(seed)
    columns = []
    for _ in range(width):
        kinds = chosen.sample(CELLS, chosen.choice((1, 1, 2, 2, 3, 5)))
        columns.append([chosen.choice(kinds) for _ in range(height)])
    return columns


def csv_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def on_spark(spark: SparkSession, source: Source) -> pa.Table:
    frame = read_static(spark, source)
    kinds = arrow_types(frame.schema)
    table = frame.toArrow()
    fields = list(zip(frame.columns, kinds, strict=True))
    return table.cast(pa.schema(fields))


def spelled(table: pa.Table) -> list[str]:
    """Rows as text: so NaN is like NaN, and the order of files does not matter."""
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_any_cells_are_what_spark_makes_of_them_or_left_to_it(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    columns = columns_of_cells(seed, 300, 5)
    names = [f"c{i}" for i in range(len(columns))]
    rows = [["x", *row] for row in zip(*columns, strict=True)]  # no line is blank
    path = tmp_path / "x.csv"
    path.write_text(csv_text(["first", *names], rows))
    expected = on_spark(spark, Source("X", path))
    read_here = 0
    for name, cells in zip(names, columns, strict=True):
        texts = pa.chunked_array([pa.array([cell or None for cell in cells], pa.string())])
        try:
            kind = type_of_texts(name, texts)
            column = read_texts(name, texts, kind)
        except OnlySparkError:
            continue
        read_here += 1
        right = expected.column(name)
        assert (kind, repr(column.to_pylist())) == (right.type, repr(right.to_pylist())), cells
    assert read_here > 150


PLAIN = {
    "quotes.csv": 'k,v\n1,"a ""b"", c"\n2,"",\n'.replace('"",\n', '""\n'),
    "crlf.csv": "k,v\r\n1,a\r\n2,b\r\n",
    "bom.csv": "\ufeffk,v\n1,a\n",
    "names.csv": "k.x,a b,ü,select\n1,2,3,4\n",
    "blanks.csv": "k,v\n1,a\n\n\n2,b\n",
    "spaces.csv": "k,v\n1, a \n2,  \n",
    "no rows.csv": "k,v\n",
    "no last line.csv": "k,v\n1,2\n3,4",
    "nulls.csv": "k,v,w\n1,,\n,,\n",
    "one.csv": "k\n1\n2\n\n3\n",
    "flags.csv": "k,v\nTrue,x\nfalse,y\n",
    "plain.jsonl": '{"b": 1, "a": "x"}\n{"a": null, "c": 2.5}\n\n{"c": 1, "b": -3}\n{}\n',
    "nested.jsonl": '{"p": {"y": 1.5, "x": [1, 2]}}\n{"p": {"x": [], "z": true}}\n{"p": null}\n',
    "nulls.jsonl": '{"a": null, "l": []}\n{"a": null, "l": [null]}\n',
    "text.jsonl": '{"a": "2026-01-01 00:00:00", "b": "é\\n\\u00e9\\"", "c": "12"}\n',
    "crlf.json": '{"a": 1}\r\n{"a": 2}\r\n',
    "big.jsonl": '{"a": 9223372036854775807, "x": 1e300}\n{"a": -1, "x": 5}\n',
}
"""Files that this process reads itself."""

FOR_SPARK = {
    "newline.csv": 'k,v\n1,"a\nb"\n',
    "quote inside.csv": 'k,v\n1,a"b\n',
    "after quote.csv": 'k,v\n1,"a"b\n',
    "short.csv": "k,v\n1\n2,3\n",
    "long.csv": "k,v\n1,2,3\n",
    "header again.csv": "k,v\n1,2\nk,v\n3,4\n",
    "returns.csv": "k,v\r1,2\r3,4\r",
    "mixed.jsonl": '{"a": 1}\n{"a": "x"}\n',
    "single.jsonl": "{'a': 1}\n",
    "array.jsonl": '[{"a": 1}, {"a": 2}]\n',
    "nan.jsonl": '{"a": NaN}\n',
    "long.jsonl": '{"a": 99999999999999999999}\n',
    "case.jsonl": '{"a": 1, "A": 2}\n',
    "same.jsonl": '{"a": 1, "a": 2}\n',
}
"""Files that are left to Spark."""


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", PLAIN)
def test_plain_files(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PLAIN[name].encode())
    _, table = read_files("X", find_files("X", path))
    expected = on_spark(spark, Source("X", path))
    assert table.schema == expected.schema
    assert spelled(table) == spelled(expected)


@pytest.mark.parametrize("name", FOR_SPARK)
def test_files_that_are_left_to_spark(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FOR_SPARK[name].encode())
    with pytest.raises(OnlySparkError):
        read_files("X", find_files("X", path))


def test_folders_and_compressed_files(spark: SparkSession, tmp_path: Path) -> None:
    for folder in ("csv", "json"):
        (tmp_path / folder).mkdir()
    (tmp_path / "csv" / "1.csv").write_text("k,v\n1,2\n")
    (tmp_path / "csv" / "_not.csv").write_text("other\n1\n")
    with gzip.open(tmp_path / "csv" / "2.csv.gz", "wt") as file:
        file.write("k,v\n3,4.5\n")
    with gzip.open(tmp_path / "json" / "1.jsonl.gz", "wt") as file:
        file.write('{"a": 1}\n')
    (tmp_path / "json" / "2.JSON").write_text('{"b": 2.5}\n')
    for folder in ("csv", "json"):
        path = tmp_path / folder
        _, table = read_files("X", find_files("X", path))
        expected = on_spark(spark, Source("X", path))
        assert table.schema == expected.schema
        assert spelled(table) == spelled(expected)


TIMES = (
    *("2026-01-01", "2026-01-01 00:00:01", "2026-01-01T00:00:01.123456789"),
    *("2026-01-01T00:00:01Z", "2026-01-01 10:00:00.5+05:30", "1601-01-01 00:00:00", ""),
)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("number", range(len(TIMES)))
def test_times_of_streams(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """In CSV and JSON, alone and mixed with others."""
    for form, times in (("csv", TIMES), ("json", TIMES), ("csv", TIMES[number : number + 1])):
        path = tmp_path / f"x.{form}"
        if form == "csv":
            path.write_text(csv_text(["k", "ts"], [["1", time] for time in times]))
        else:
            lines = [f'{{"k": 1, "ts": "{time}"}}' for time in times if time]
            path.write_text("\n".join(lines))
        _, table = read_files("X", find_files("X", path), "TS")
        expected = on_spark(spark, Source("X", path, "TS"))
        assert table.schema == expected.schema
        assert spelled(table) == spelled(expected)


@pytest.mark.parametrize("text", ["1700000000", "1700000000.5", "soon", "2026", "12:00", "True"])
def test_times_that_are_none_end_as_they_do_on_spark(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"k,ts\n1,{text}\n")
    try:
        _, table = read_files("X", find_files("X", path), "ts")
    except OnlySparkError:
        return
    except SchemaError as error:  # numbers that nobody has said the unit of
        with pytest.raises(SchemaError, match=re.escape(str(error))):
            on_spark(spark, Source("X", path, "ts"))
        return
    expected = on_spark(spark, Source("X", path, "ts"))
    assert table.schema == expected.schema


def test_a_column_that_is_not_there_is_reported_in_the_same_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("k,ts\n1,2026-01-01\n")
    messages = []
    for read in (
        lambda: read_files("X", find_files("X", path), "t"),
        lambda: read_static(spark, Source("X", path, "t")),
    ):
        with pytest.raises(NilometerError) as error:
            read()
        messages.append(str(error.value))
    assert messages[0] == messages[1]


PARQUET = {
    "numbers": {
        "b": pa.array([1, None], pa.int8()),
        "s": pa.array([1, None], pa.int16()),
        "i": pa.array([1, None], pa.int32()),
        "l": pa.array([1, None], pa.int64()),
        "f": pa.array([1.5, float("nan")], pa.float32()),
        "d": pa.array([1.5, None]),
        "t": pa.array([True, None]),
    },
    "times": {
        "zoned": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
        "milli": pa.array([1, None], pa.timestamp("ms", "UTC")),
        "local": pa.array([1, None], pa.timestamp("us")),
        "day": pa.array([1, None], pa.date32()),
    },
    "texts": {
        "text": pa.array(["a", None]),
        "large": pa.array(["a", None], pa.large_string()),
        "coded": pa.array(["a", "a"]).dictionary_encode(),
        "bytes": pa.array([b"a", None]),
        "money": pa.array([None, 2], pa.decimal128(10, 2)),
    },
}


@pytest.mark.parametrize("name", PARQUET)
def test_parquet(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(PARQUET[name]), path)
    _, table = read_files("X", find_files("X", path))
    expected = on_spark(spark, Source("X", path))
    assert table.schema.names == expected.schema.names
    assert table.schema.types == expected.schema.types
    assert spelled(table) == spelled(expected)


def test_parquet_that_is_left_to_spark(tmp_path: Path) -> None:
    for kind in (pa.uint8(), pa.uint64(), pa.timestamp("ns"), pa.time64("us"), pa.duration("us")):
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table({"a": pa.array([1], kind)}), path)
        with pytest.raises(OnlySparkError):
            read_files("X", find_files("X", path))
