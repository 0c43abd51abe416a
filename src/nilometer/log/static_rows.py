"""The static values of sensors: stored once per version, and joined to readings when they are read.

They are in files beside the segments, one for every addition; many small ones are merged. The
name of a file says which additions it holds, so a file is obsolete once another covers it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.errors import LogError
from nilometer.log.layout import SENSOR, TIME, LogLayout, Names, SensorLayout, fit_columns
from nilometer.log.location import storage_at
from nilometer.log.published import read_layout
from nilometer.log.sealed import seal, unseal
from nilometer.log.storage import Storage, file_names

_FOLDER: Final = "static"
_SUFFIX: Final = ".arrow"
_LOCK: Final = f"{_FOLDER}/lock"
_MOST_FILES: Final = 32
_TRIES: Final = 10


def add_static_rows(location: str | Path, rows: pa.Table) -> None:
    """Add versions (SENSOR and the static columns); they are durable when this returns."""
    storage = storage_at(location)
    own = _sensor_layout(storage)
    columns = rows.cast(own.versions).columns
    rows = pa.Table.from_arrays(columns, schema=own.versions_in_files)
    with storage.exclusive(_LOCK):
        spans = _spans(storage)
        number = 1 + max((last for _, last in spans), default=-1)
        storage.write(_name(number, number), [_to_bytes(rows)])
        if len(spans) >= _MOST_FILES:
            merged = _read(storage, [*spans, (number, number)], own.versions_in_files)
            storage.write(_name(0, number), [_to_bytes(merged)])
            for span in [*spans, (number, number)]:
                storage.delete(_name(*span))


def read_static_rows(location: str | Path, layout: SensorLayout | None = None) -> pa.Table:
    """All versions that were added, in that order; in this layout, or in the log's own."""
    storage = storage_at(location)
    own = layout or _sensor_layout(storage)
    for _ in range(_TRIES):
        try:
            return _read(storage, _spans(storage), own.versions, own.names)
        except FileNotFoundError:  # files were merged between the listing and the reading
            continue
    raise LogError("the static values of the log keep changing", detail=storage.location)


def expand(layout: LogLayout, rows: pa.RecordBatch, static: pa.Table) -> pa.RecordBatch:
    """Stored rows in the columns that readers see."""
    own = layout.sensors
    if own is None:
        return rows
    at = pc.index_in(rows.column(SENSOR), static.column(SENSOR).combine_chunks())
    if at.null_count:
        missing = pc.unique(rows.column(SENSOR).filter(at.is_null())).to_pylist()
        raise LogError(
            "the log has readings of sensors that it does not know",
            detail=f"no static values for the versions {missing[:10]}",
        )
    columns = [static.column(name).combine_chunks().take(at) for name in own.static.names]
    columns.insert(own.place, _readings(own, rows))
    return pa.RecordBatch.from_arrays([*columns, rows.column(TIME)], schema=layout.shown)


def _readings(own: SensorLayout, rows: pa.RecordBatch) -> pa.StructArray:
    values = [rows.column(TIME if one.name == own.time else one.name) for one in own.fields]
    return pa.StructArray.from_arrays(values, fields=list(own.fields))


def _sensor_layout(storage: Storage) -> SensorLayout:
    stored = read_layout(storage)
    if stored is None or stored[0].sensors is None:
        raise LogError("there is no log of a sensor table here", detail=storage.location)
    return stored[0].sensors


def _spans(storage: Storage) -> list[tuple[int, int]]:
    """The additions that each current file holds, first and last, in order."""
    spans = [_span(name) for name in file_names(storage, _FOLDER, _SUFFIX)]
    return [
        one for one in spans if not any(other != one and _covers(other, one) for other in spans)
    ]


def _covers(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span[0] <= other[0] and other[1] <= span[1]


def _read(
    storage: Storage, spans: Iterable[tuple[int, int]], columns: pa.Schema, names: Names = ()
) -> pa.Table:
    """The rows of some files, in these columns; NULL where a file lacks a column."""
    batches: list[pa.RecordBatch] = []
    for span in spans:
        with pa.ipc.open_stream(_content(storage, span)) as file:
            fit = fit_columns(file.schema, columns, names)
            schema = columns if fit is None else file.schema
            for batch in file:
                plain = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                batches.append(plain if fit is None else fit(plain))
    return pa.Table.from_batches(batches, columns).combine_chunks()


def _content(storage: Storage, span: tuple[int, int]) -> bytes:
    try:
        return unseal(storage.read(_name(*span)))
    except ValueError as error:
        raise LogError(
            "the log is damaged",
            detail=f"{storage.location}/{_name(*span)} cannot be read: {error}",
            hint="restore the file from a copy",
        ) from None


def _to_bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return seal(sink.getvalue().to_pybytes())


def _name(first: int, last: int) -> str:
    return f"{_FOLDER}/{first:012d}-{last:012d}{_SUFFIX}"


def _span(name: str) -> tuple[int, int]:
    first, last = name.removesuffix(_SUFFIX).split("-")
    return int(first), int(last)
