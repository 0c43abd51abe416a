"""The stream type file: every row once, at the speed that was chosen, also after a restart."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.kernels.read_times import with_forms
from nilometer.model.time_forms import EpochTimes, EpochUnit, TimeForm, WrittenTimes
from nilometer.sensors.stream_type import END, NEW_VALUE, NO_VALUE, BadReadingError, SensorAddress
from nilometer.sensors.types.file import FileStream

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema([("n", pa.int64()), ("t", pa.float64()), ("at", TIMESTAMP)])
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(
    path: Path | str,
    delivered: frozenset[bytes] = frozenset(),
    time: str | None = "at",
    form: TimeForm | None = None,
    **how: str,
) -> SensorAddress:
    columns = with_forms(COLUMNS, form)
    return SensorAddress("T", "s", str(path), how, columns, time, "t/1", delivered)


def opened(sensor: SensorAddress, clock: Any = None) -> FileStream:
    stream = FileStream(clock) if clock is not None else FileStream()
    stream.init_stream(sensor)
    return stream


def read(stream: FileStream, pieces: int = 1_000_000) -> tuple[list[Any], list[Any], list[bytes]]:
    """Rows, what is none, and keys, up to the end or so many readings."""
    rows: list[Any] = []
    bad: list[Any] = []
    keys: list[bytes] = []
    for _ in range(pieces):
        reading = stream.read_stream()
        if isinstance(reading, list):
            bad += reading
        elif reading.status is END:
            break
        elif reading.status is NEW_VALUE:
            rows += reading.value.to_pylist()
            keys.append(reading.key)
    return rows, bad, keys


def row(number: int) -> dict[str, Any]:
    return {"n": number, "t": number / 2, "at": START + timedelta(seconds=number)}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows, COLUMNS), path)
    elif path.suffix == ".csv":
        lines = [f"{one['n']},{one['t']},{one['at'].isoformat()}" for one in rows]
        path.write_text("\n".join(["n,t,at", *lines]) + "\n")
    else:
        path.write_text("".join(json.dumps(one, default=datetime.isoformat) + "\n" for one in rows))
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_all_rows_in_bulk(tmp_path: Path, ending: str) -> None:
    rows = [row(number) for number in range(20_000)]
    stream = opened(at(write(tmp_path / f"a.{ending}", rows)))
    taken, bad, keys = read(stream)
    assert taken == rows
    assert bad == []
    assert len(keys) < 50


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_several_files_in_the_order_of_their_names(tmp_path: Path, ending: str) -> None:
    for number in (2, 0, 1):
        write(tmp_path / f"part{number}.{ending}", [row(number * 3 + one) for one in range(3)])
    taken, _, keys = read(opened(at(tmp_path / f"part*.{ending}")))
    assert taken == [row(number) for number in range(9)]
    for stored in range(len(keys) + 1):
        again, _, _ = read(opened(at(tmp_path / f"part*.{ending}", frozenset(keys[:stored]))))
        assert again == [row(number) for number in range(stored * 3, 9)]


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:01Z", "2026-01-01 00:00:01", "2026-01-01T02:00:01+02:00"]
)
@pytest.mark.parametrize("broken", [False, True])
def test_instants_with_and_without_a_zone(tmp_path: Path, text: str, broken: bool) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"at,n\n{text},1\n" + (f"{text},x\n" if broken else ""))
    taken, bad, _ = read(opened(at(file)))
    assert taken == [{"n": 1, "t": None, "at": START + timedelta(seconds=1)}]
    assert len(bad) == broken


def number_at(moment: datetime, unit: EpochUnit) -> int:
    """An instant as a number since 1970."""
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return int(micros / unit.micros)


@pytest.mark.parametrize("unit", EpochUnit)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("follow", ["false", "true"])
@pytest.mark.parametrize("garbage", [False, True])
def test_numbers_are_times_in_their_unit_and_every_row_is_stored_or_refused(
    tmp_path: Path, ending: str, unit: EpochUnit, follow: str, garbage: bool
) -> None:
    rows = [row(number) for number in range(3000)]
    numbers = [{**one, "at": number_at(one["at"], unit)} for one in rows]
    file, bad = tmp_path / f"a.{ending}", 0
    if ending == "parquet":
        if garbage:
            numbers = [{**one, "at": f"soon {one['at']}"} for one in numbers]
            rows, bad = [], len(numbers)
        pq.write_table(pa.Table.from_pylist(numbers), file)
    elif ending == "csv":
        lines = [f"{one['n']},{one['t']},{one['at']}" for one in numbers]
        if garbage:
            lines[1500:1500] = ["7,7.0,soon", "8,8.0,12:30"]
            bad = 2
        file.write_text("\n".join(["n,t,at", *lines]) + "\n")
    else:
        texts = [json.dumps(one) for one in numbers]
        if garbage:
            texts[1500:1500] = [
                '{"n": 7, "at": "soon"}',
                '{"n": 8, "at": true}',
                '{"n": 9, "at": []}',
            ]
            bad = 3
        file.write_text("\n".join(texts) + "\n")
    pieces = 20 if follow == "true" else 1_000_000
    taken, refused, _ = read(opened(at(file, form=EpochTimes(unit), follow=follow)), pieces)
    assert taken == rows
    assert len(refused) == bad


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("follow", ["false", "true"])
@pytest.mark.parametrize("garbage", [False, True])
def test_texts_of_a_pattern_are_times_and_every_row_is_stored_or_refused(
    tmp_path: Path, ending: str, follow: str, garbage: bool
) -> None:
    rows = [row(number) for number in range(300)]
    texts = [{**one, "at": one["at"].strftime("%d-%b-%Y %H:%M:%S")} for one in rows]
    bad = ["2026-01-01 00:00:00", "32-Jan-2026 0:00:00", "01-Foo-2026 0:00:00"] if garbage else []
    texts += [{"n": -1, "t": 0.0, "at": text} for text in bad]
    file = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(texts), file)
    elif ending == "csv":
        lines = [f"{one['n']},{one['t']},{one['at']}" for one in texts]
        file.write_text("\n".join(["n,t,at", *lines]) + "\n")
    else:
        file.write_text("".join(json.dumps(one) + "\n" for one in texts))
    sensor = at(file, form=WrittenTimes("dd-MMM-yyyy H:mm:ss"), follow=follow)
    taken, refused, _ = read(opened(sensor), 20 if follow == "true" else 1_000_000)
    assert taken == rows
    assert len(refused) == len(bad)


@pytest.mark.parametrize("follow", ["false", "true"])
def test_a_name_in_the_declared_case_comes_before_others(tmp_path: Path, follow: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("N,n,at\n1,2,2026-01-01\n")
    taken, _, _ = read(opened(at(file, follow=follow)), 3)
    assert [one["n"] for one in taken] == [2]


ODD = pa.schema([("a.b", pa.int64()), ("my größe", pa.string()), ("At", TIMESTAMP)])


@pytest.mark.parametrize("follow", ["false", "true"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_columns_of_odd_names(tmp_path: Path, follow: str, mark: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f'{mark}AT, a.b ,"my größe",x,x\n2026-01-01,1,"a,b",y,z\n', encoding="utf-8")
    sensor = SensorAddress("T", "s", str(file), {"follow": follow}, ODD, "At", "t/1", frozenset())
    taken, bad, _ = read(opened(sensor), 3)
    assert (taken, bad) == ([{"a.b": 1, "my größe": "a,b", "At": START}], [])


@pytest.mark.parametrize("follow", ["false", "true"])
@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("n,at,n", "two columns of the header are named n"),
        ("1,2.0,2026-01-01", "the header names none of the declared columns"),
        ("n;t;at", "the header names none of the declared columns"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, follow: str, header: str, message: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"{header}\n1,2.0,2026-01-01\n")
    with pytest.raises(InputError) as refused:
        read(opened(at(file, follow=follow)), 3)
    assert refused.value.message == message


def test_eight_digits_are_a_number_where_a_unit_is_declared(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,at\n1,20260101\n")
    taken, bad, _ = read(opened(at(file, form=EpochTimes(EpochUnit.SECONDS))))
    assert bad == []
    assert taken[0]["at"] == datetime(1970, 8, 23, 11, 48, 21, tzinfo=UTC)


def test_a_number_that_cannot_be_seconds_is_refused_with_what_it_would_mean(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,at\n1,1393263000000\n")
    taken, (bad,), _ = read(opened(at(file)))
    assert taken == []
    assert bad.reason == (
        "column at: no time between 1700 and 9999 in seconds since 1970 (1393263000000 would be "
        "2014-02-24 as milliseconds, 1970-01-17 as microseconds): 1393263000000"
    )


def test_fractions_of_seconds_and_compact_dates(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,at\n1,1767225600.25\n2,20260101\n3,20260101T000001Z\n4, 1767225602 \n5,\n")
    taken, bad, _ = read(opened(at(file)))
    assert bad == []
    assert [one["at"] and (one["at"] - START).total_seconds() for one in taken] == [
        0.25,
        0,
        1,
        2,
        None,
    ]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_restart_at_any_row_of_a_replay_loses_none(tmp_path: Path, ending: str) -> None:
    """Rows that do not fit stand between others: the place in the file counts them, too."""
    file = tmp_path / f"a.{ending}"
    for number in range(12):
        when = (START + timedelta(seconds=number)).isoformat()
        cell = "soon" if number % 3 == 1 else when
        text = f"{number},1.0,{cell}" if ending == "csv" else json.dumps({"n": number, "at": cell})
        if ending == "csv" and number == 0:
            file.write_text("n,t,at\n")
        with file.open("a") as lines:
            lines.write(text + "\n")
    good = [number for number in range(12) if number % 3 != 1]
    now = [0.0]
    stream = opened(at(file, speed="recorded"), lambda: now[0])
    stored: list[int] = []
    for _ in range(60):
        taken, _, keys = read(stream, 1)
        stored += [one["n"] for one in taken]
        if taken:
            rest, _, _ = read(opened(at(file, frozenset(keys))))
            assert stored + [one["n"] for one in rest] == good
        now[0] += 0.25
    assert stored == good


def test_only_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "n,t,at,more\n1,0.5,2026-01-01,a\n2,x,2026-01-01,b\n3,1\n4,2.0,,d\n99999999999999999999,1,,\n"
    )
    taken, bad, _ = read(opened(at(file)))
    assert [one["n"] for one in taken] == [1, 4]
    assert taken[1] == {"n": 4, "t": 2.0, "at": None}
    assert [one.reason for one in bad] == [
        "column t is double, got 'x'",
        "a line of 2 cells where 4 were expected",
        "column n is int64, got 99999999999999999999",
    ]
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"n": 1}\n{oops\n\n{"n": "many"}\n[1]\n{"n": 2, "x": 1}\n')
    taken, bad, _ = read(opened(at(lines)))
    assert [one["n"] for one in taken] == [1, 2]
    assert [one.reason.split(":")[0] for one in bad] == [
        "malformed JSON",
        "column n is int64, got 'many'",
        "not a JSON object",
    ]
    assert all(isinstance(one, BadReadingError) for one in bad)


def test_recorded_and_chosen_speed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", [row(number) for number in (0, 1, 2, 2, 7)])
    for speed, factor in (("recorded", 1.0), ("10", 10.0)):
        now = [100.0]
        stream = opened(at(file, speed=speed), partial(now.__getitem__, 0))
        played: list[tuple[float, int]] = []
        while (reading := stream.read_stream()).status is not END:
            if reading.status is NO_VALUE:
                now[0] += stream.interval
            else:
                played += [(now[0] - 100.0, one["n"]) for one in reading.value.to_pylist()]
        assert [number for _, number in played] == [0, 1, 2, 2, 7]
        for instant, number in played:
            assert number / factor - 1e-6 <= instant < number / factor + 0.01
    with pytest.raises(InputError, match="only rows with a time can be replayed at a speed"):
        opened(at(file, time=None, speed="10"))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_lines_that_are_added_are_followed(tmp_path: Path, ending: str) -> None:
    file = write(tmp_path / f"a.{ending}", [row(0), row(1)])
    stream = opened(at(file, follow="yes"))
    taken, _, keys = read(stream, 5)
    assert taken == [row(0), row(1)]
    more = (tmp_path / f"b.{ending}", [row(2)])
    line = write(*more).read_text().splitlines()[-1]
    more[0].unlink()
    with file.open("a") as growing:
        growing.write(line[:5])
        growing.flush()
        assert read(stream, 3) == ([], [], [])
        growing.write(line[5:] + "\n")
    taken, _, more_keys = read(stream, 3)
    assert taken == [row(2)]
    again = opened(at(file, frozenset(keys), follow="yes"))
    assert read(again, 3)[0] == [row(2)]
    assert read(opened(at(file, frozenset(more_keys), follow="yes")), 3)[0] == []


def test_no_file_yet(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        opened(at(tmp_path / "none*.csv"))
    (tmp_path / "empty.csv").write_text("")
    assert read(opened(at(tmp_path / "empty.csv"))) == ([], [], [])


CELLS = st.sampled_from(["1", "2.5", "-7", "x", "", '"3"', "1e400", "99999999999999999999"])


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=12), stops=st.integers(0, 12)
)
def test_a_file_is_either_stored_or_refused_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]], stops: int
) -> None:
    """Against what Python makes of each line; a restart changes nothing."""
    file = tmp_path_factory.mktemp("any") / "a.csv"
    file.write_text("n,t\n" + "".join(",".join(cells) + "\n" for cells in lines))
    good, refused = [], 0
    for cells in lines:
        if not any(cells) and len(cells) == 1:
            continue  # an empty line
        value = _expected(cells)
        good += [value] if value is not None else []
        refused += value is None
    taken, bad, _ = read(opened(at(file)))
    assert [(one["n"], one["t"]) for one in taken] == good
    assert len(bad) == refused
    counted = [cells for cells in lines if len(cells) == 2]
    rest = [one for cells in counted[stops:] if (one := _expected(cells)) is not None]
    again, _, _ = read(opened(at(file, frozenset([f"{file}:{stops}".encode()]))))
    assert [(one["n"], one["t"]) for one in again] == rest


def _expected(cells: list[str]) -> tuple[int | None, float | None] | None:
    if len(cells) != 2:
        return None
    first, second = (one.strip('"') for one in cells)
    try:
        number = int(first) if first else None
        if number is not None and not -(2**63) <= number < 2**63:
            return None
        return number, float(second) if second else None
    except ValueError:
        return None
