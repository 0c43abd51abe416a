"""The catalog, on SQLite and on PostgreSQL: what is stored is found again, as it was."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isnan, nan
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.errors import CatalogError, InputError, NameTakenError, UnknownNameError
from nilometer.log.layout import SENSOR, TIMESTAMP
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.stored_queries import NamedQuery, QueryState
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sql.ddl.nodes import ObjectKind

STREAM = Declaration(
    "Gauge",
    pa.schema({"level": pa.float64(), "ts": TIMESTAMP}),
    "mqtt",
    {"topic": "nile/+/level", "größe": "\0 \ud800"},
    time="ts",
    lateness=5_000_000,
    idle=None,
    history=FOREVER,
)
SENSORS = Declaration(
    "Sensors",
    pa.schema({"temperature": pa.float64(), "humidity": pa.float32()}),
    "http",
    idle=0,
    static=pa.schema({"SensorID": pa.int32(), "Location": pa.string()}),
    place=1,
    column="Reading",
)
EVERYTHING = pa.schema(
    {
        "tiny": pa.int8(),
        "small": pa.int16(),
        "int": pa.int32(),
        "big": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "yes": pa.bool_(),
        "text": pa.string(),
        "bytes": pa.binary(),
        "day": pa.date32(),
        "at": TIMESTAMP,
        "price": pa.decimal128(38, 6),
    }
)
ROWS: list[dict[str, object]] = [
    {
        "tiny": -128,
        "small": -32768,
        "int": 2**31 - 1,
        "big": -(2**63),
        "float": -0.0,
        "double": inf,
        "yes": True,
        "text": "a\0b 🌊 'x'",
        "bytes": b"\x00\xff",
        "day": date(1, 1, 1),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        "price": Decimal("99999999999999999999999999999999.999999"),
    },
    {"double": nan, "float": -inf, "text": ""},
    dict.fromkeys(EVERYTHING.names),
]


def _insert(catalog: SensorCatalog, *names: str) -> list[Sensor]:
    rows = [({"SensorID": i, "Location": name}, f"http://{name}") for i, name in enumerate(names)]
    return catalog.insert_sensors("Sensors", rows)


def _all(rows: pa.Table) -> Collection[int]:
    return rows[SENSOR].to_pylist()


def test_declarations_come_back_as_they_were(catalog: SensorCatalog) -> None:
    assert catalog.create(STREAM)
    assert catalog.create(SENSORS)
    assert catalog.declaration("Gauge") == STREAM
    assert catalog.declaration("sensors") == SENSORS
    assert catalog.declaration("other") is None
    assert catalog.declarations() == [STREAM, SENSORS]


def test_a_catalog_is_there_when_it_is_opened_again(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as first:
        first.create(SENSORS)
        made = _insert(first, "hall")
    with SensorCatalog.open(catalog_url) as second:
        assert second.declarations() == [SENSORS]
        assert second.sensors("Sensors") == made


def test_names_are_unique_whatever_has_them(catalog: SensorCatalog) -> None:
    catalog.create(STREAM)
    with pytest.raises(NameTakenError) as caught:
        catalog.create_table("GAUGE", EVERYTHING)
    assert str(caught.value) == (
        "stream Gauge already exists\n"
        "  detail: a table needs a name of its own\n"
        "  hint: choose another name, or DROP STREAM Gauge first"
    )
    with pytest.raises(NameTakenError, match="stream Gauge already exists"):
        catalog.create(STREAM)
    with pytest.raises(NameTakenError):
        catalog.create_query("gauge", "SELECT 1", "append")
    assert not catalog.create(STREAM, if_not_exists=True)


def test_unknown_names_are_refused_with_the_nearest(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    catalog.create(STREAM)
    with pytest.raises(UnknownNameError) as caught:
        _insert_into(catalog, "Sensor")
    assert str(caught.value) == "there is no sensor table Sensor\n  hint: did you mean Sensors?"
    with pytest.raises(UnknownNameError, match="^Gauge is a stream, not a sensor table$"):
        _insert_into(catalog, "gauge")
    with pytest.raises(UnknownNameError) as caught:
        catalog.count_rows("t")
    assert str(caught.value) == "there is no table t\n  hint: there is none yet"


def _insert_into(catalog: SensorCatalog, name: str) -> None:
    catalog.insert_sensors(name, [({}, "a")])


def test_values_keep_their_types(catalog: SensorCatalog) -> None:
    declared = Declaration(
        "s", pa.schema({"x": pa.int8()}), "tcp", static=EVERYTHING, place=12, column="r"
    )
    catalog.create(declared)
    made = catalog.insert_sensors("s", [(row, "a") for row in ROWS])
    expected = pa.Table.from_pylist(ROWS, EVERYTHING)
    rows = catalog.sensor_rows("s")
    assert rows.column_names == [*EVERYTHING.names, "r", SENSOR]
    _assert_same(rows.select(EVERYTHING.names), expected)
    assert isnan(made[1].values["double"])  # type: ignore[arg-type]
    assert made[0].values == ROWS[0]
    catalog.create_table("t", EVERYTHING)
    catalog.insert_rows("t", expected)
    _assert_same(catalog.table("t"), expected)


def _assert_same(rows: pa.Table, expected: pa.Table) -> None:
    assert rows.schema == expected.schema
    # As text, so that NaN and -0.0 are themselves.
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())


def test_a_sensor_keeps_its_number_and_gets_new_versions(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    hall, roof = _insert(catalog, "hall", "roof")
    assert hall.values == {"SensorID": 0, "Location": "hall"}
    assert (hall.number, roof.number) != (roof.number, hall.number)
    moved = {"SensorID": 0, "Location": "cellar"}
    (new,) = catalog.update_sensors("sensors", lambda rows: {hall.version: (moved, "http://hall")})
    assert new == Sensor(hall.number, new.version, moved, "http://hall")
    assert new.version not in (hall.version, roof.version)
    assert catalog.sensors("Sensors") == [new, roof]


def test_an_update_that_changes_nothing_makes_no_version(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    (hall,) = _insert(catalog, "hall")
    same = {hall.version: (hall.values, hall.address)}
    assert catalog.update_sensors("Sensors", lambda rows: same) == []
    assert catalog.sensors("Sensors") == [hall]
    other = {hall.version: (hall.values, "http://elsewhere")}
    assert len(catalog.update_sensors("Sensors", lambda rows: other)) == 1


def test_versions_are_never_used_again(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    used = [one.version for one in _insert(catalog, "a", "b")]
    assert [one.version for one in catalog.delete_sensors("Sensors", _all)] == used
    assert catalog.sensors("Sensors") == []
    used += [one.version for one in _insert(catalog, "a")]
    catalog.drop(ObjectKind.SENSOR_TABLE, "Sensors")
    catalog.create(SENSORS)
    assert catalog.sensors("Sensors") == []
    used += [one.version for one in _insert(catalog, "a")]
    assert len(set(used)) == len(used)


def test_many_sensors_change_at_once(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    _insert(catalog, *(str(i) for i in range(1201)))
    renamed = catalog.update_sensors(
        "Sensors", lambda rows: {version: ({"SensorID": 7}, "x") for version in _all(rows)}
    )
    assert len(renamed) == 1201
    assert catalog.sensors("Sensors") == renamed
    assert len(catalog.delete_sensors("Sensors", lambda rows: _all(rows)[1:])) == 1200
    assert catalog.sensors("Sensors") == renamed[:1]


def test_sensor_rows_have_the_declared_order(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    assert catalog.sensor_rows("Sensors").num_rows == 0
    (hall,) = _insert(catalog, "hall")
    rows = catalog.sensor_rows("Sensors")
    assert rows.column_names == ["SensorID", "Reading", "Location", SENSOR]
    assert rows.to_pylist() == [
        {"SensorID": 0, "Reading": "http://hall", "Location": "hall", SENSOR: hall.version}
    ]


def test_sensors_need_no_static_columns(catalog: SensorCatalog) -> None:
    bare = Declaration("b", SENSORS.readings, "http", static=pa.schema([]), column="r")
    catalog.create(bare)
    made = catalog.insert_sensors("b", [({}, "a"), ({}, "b")])
    assert catalog.sensors("b") == made
    assert catalog.sensor_rows("b")["r"].to_pylist() == ["a", "b"]
    catalog.update_sensors("b", lambda rows: {made[0].version: ({}, "c")})
    assert [one.address for one in catalog.sensors("b")] == ["c", "b"]


def test_values_that_do_not_fit_change_nothing(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    before = catalog.generation("Sensors")
    for row in ({"SensorID": 2**31}, {"SensorID": "x"}, {"Nowhere": 1}):
        with pytest.raises(CatalogError, match="the columns are SensorID int32, Location string"):
            catalog.insert_sensors("Sensors", [({"SensorID": 1}, "a"), (row, "b")])
    with pytest.raises(InputError, match="the address of a sensor cannot hold this text"):
        catalog.insert_sensors("Sensors", [({"SensorID": 1}, "a"), ({}, "b\0")])
    assert catalog.sensors("Sensors") == []
    assert catalog.generation("Sensors") == before


def test_the_generation_grows_with_every_change(catalog: SensorCatalog) -> None:
    assert catalog.generation("Sensors") == 0
    seen = [catalog.generation()]

    def assert_changed() -> None:
        assert catalog.generation("sensors") > seen[-1]
        seen.append(catalog.generation("SENSORS"))
        assert catalog.generation() == seen[-1]

    catalog.create(SENSORS)
    assert_changed()
    (hall,) = _insert(catalog, "hall")
    assert_changed()
    catalog.update_sensors("Sensors", lambda rows: {hall.version: ({}, "x")})
    assert_changed()
    catalog.delete_sensors("Sensors", _all)
    assert_changed()
    catalog.create(STREAM)
    assert catalog.generation("Sensors") == seen[-1]
    catalog.drop(ObjectKind.SENSOR_TABLE, "Sensors")
    assert catalog.generation("Sensors") == 0
    seen.append(catalog.generation())
    catalog.create(SENSORS)
    assert_changed()


def test_tables_keep_rows_in_order(catalog: SensorCatalog) -> None:
    schema = pa.schema({"k": pa.int64(), "v": pa.string()})
    catalog.create_table("T", schema)
    assert catalog.tables() == {"T": schema}
    assert catalog.table("t").num_rows == 0
    for start in range(0, 3000, 300):
        keys = list(range(start, start + 300))
        noise = [str(hash((key, "x"))) * 3 for key in keys]
        catalog.insert_rows("T", pa.table({"v": noise, "k": keys}))
    assert catalog.table("T")["k"].to_pylist() == list(range(3000))
    assert catalog.count_rows("T") == 3000
    catalog.change_rows("T", lambda rows: rows.slice(1, 2))
    assert catalog.table("T")["k"].to_pylist() == [1, 2]
    catalog.change_rows("T", lambda rows: rows.slice(0, 0))
    assert catalog.table("T").to_pylist() == []
    assert catalog.table("nothing") is None


def test_rows_of_other_types_are_refused(catalog: SensorCatalog) -> None:
    catalog.create_table("T", pa.schema({"k": pa.int8()}))
    for rows in (pa.table({"k": [1000]}), pa.table({"other": [1]}), pa.table({"k": ["x"]})):
        with pytest.raises(CatalogError, match="rows do not fit their table"):
            catalog.insert_rows("T", rows)


def test_queries_remember_their_state(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url, clock=lambda: 12) as catalog:
        catalog.create_query("Hot", "SELECT '🌡'", "append")
        with pytest.raises(NameTakenError):
            catalog.create_query("hot", "SELECT 2", "append")
        made = NamedQuery("Hot", "SELECT '🌡'", "append", QueryState.RUNNING, 12, None)
        assert catalog.query("HOT") == made
        assert catalog.queries() == [made]
        catalog.set_query_state("hot", QueryState.STOPPED, error="it\0 broke")
        stopped = catalog.query("hot")
        assert stopped is not None
        assert (stopped.state, stopped.error) == (QueryState.STOPPED, "it broke")
        catalog.set_query_state("hot", QueryState.RUNNING)
        assert catalog.query("hot") == made
        assert catalog.drop(ObjectKind.QUERY, "hot")
        assert catalog.query("hot") is None
        with pytest.raises(UnknownNameError):
            catalog.set_query_state("hot", QueryState.RUNNING)


def test_queries_are_those_of_now_whoever_changed_them(catalog_url: str) -> None:
    with SensorCatalog.open(catalog_url) as here, SensorCatalog.open(catalog_url) as elsewhere:
        assert here.queries() == []
        elsewhere.create_query("q", "SELECT 1", "append")
        here.queries().clear()
        assert [(one.name, one.state) for one in here.queries()] == [("q", QueryState.RUNNING)]
        elsewhere.set_query_state("q", QueryState.STOPPED)
        assert [one.state for one in here.queries()] == [QueryState.STOPPED]
        elsewhere.set_query_options("q", {"results": 1})
        assert here.queries() == elsewhere.queries()
        elsewhere.drop(ObjectKind.QUERY, "q")
        assert here.queries() == []


def test_drop_minds_the_kind(catalog: SensorCatalog) -> None:
    catalog.create(SENSORS)
    with pytest.raises(UnknownNameError, match="^Sensors is a sensor table, not a stream$"):
        catalog.drop(ObjectKind.STREAM, "Sensors", if_exists=True)
    assert not catalog.drop(ObjectKind.STREAM, "Gauge", if_exists=True)
    with pytest.raises(UnknownNameError, match="there is no stream Gauge"):
        catalog.drop(ObjectKind.STREAM, "Gauge")
    assert [one.name for one in catalog.names()] == ["Sensors"]


def test_names_that_cannot_be_stored_are_refused(catalog: SensorCatalog) -> None:
    for name in ("a\0b", "a\ud800"):
        with pytest.raises(InputError, match="a name cannot hold this text"):
            catalog.create_table(name, EVERYTHING)
    assert catalog.create_table("Größe", EVERYTHING)
    assert catalog.find("GRÖSSE") is None
    assert catalog.table("GRÖßE") is not None


def test_a_new_catalog_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with SensorCatalog.open(tmp_path / "plant" / "catalog.sqlite"):
            modes = {one.name: one.stat().st_mode & 0o777 for one in (tmp_path / "plant").iterdir()}
    finally:
        os.umask(before)
    assert (tmp_path / "plant").stat().st_mode & 0o777 == 0o700
    assert modes["catalog.sqlite"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_file_that_is_no_catalog_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are notes\n" * 100)
    with pytest.raises(CatalogError, match="the catalog cannot be used") as caught:
        SensorCatalog.open(file)
    assert "file is not a database" in str(caught.value)
    assert file.read_text() == "these are notes\n" * 100
