"""Any history of changes leaves what a plain model says, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from math import nan
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.log.layout import SENSOR, TIMESTAMP
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import CatalogStatement, execute
from nilometer.sensors.declaration import Declaration
from nilometer.sql.ddl.nodes import ObjectKind
from nilometer.sql.statements import read_statements
from tests.postgres import Postgres

Row: TypeAlias = dict[str, Any]
Step: TypeAlias = tuple[Any, ...]

VALUES: Final[dict[pa.DataType, st.SearchStrategy[Any]]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False) | st.just(nan),
    pa.float64(): st.floats(allow_nan=False) | st.just(nan),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
    # Arrow knows one object for UTC, no fold, and no negative zero of decimals.
    TIMESTAMP: st.datetimes(timezones=st.just(pa.scalar(0, TIMESTAMP).as_py().tzinfo)).map(
        lambda instant: instant.replace(fold=0)
    ),
    pa.decimal128(9, 3): st.decimals(-999_999, 999_999, places=3).map(lambda value: value + 0),
}
ADDRESSES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
OPTIONS = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)
DURATIONS = st.integers(0, FOREVER)
FRESH = count()


@st.composite
def schemas(draw: st.DrawFn, least: int) -> pa.Schema:
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=least, max_size=5))
    return pa.schema([pa.field(f"C{place}", kind) for place, kind in enumerate(kinds)])


def rows(schema: pa.Schema) -> st.SearchStrategy[Row]:
    values = st.tuples(*(st.none() | VALUES[one.type] for one in schema))
    return values.map(lambda row: dict(zip(schema.names, row, strict=True)))


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    static = draw(schemas(0))
    return Declaration(
        name="",
        readings=draw(schemas(1)),
        stream_type="http",
        options=draw(OPTIONS),
        time=draw(st.none() | st.just("C0")),
        lateness=draw(DURATIONS),
        idle=draw(st.none() | DURATIONS),
        every=draw(st.none() | DURATIONS),
        history=draw(DURATIONS),
        static=static,
        place=draw(st.integers(0, len(static))),
        column="Reading",
    )


@st.composite
def sensor_histories(draw: st.DrawFn) -> tuple[Declaration, list[Step]]:
    declared = draw(declarations())
    sensors = st.tuples(rows(declared.static), ADDRESSES)
    chosen = st.sets(st.integers(0, 6))
    steps = st.one_of(
        st.tuples(st.just("insert"), st.lists(sensors, max_size=4)),
        st.tuples(st.just("update"), chosen, sensors),
        st.tuples(st.just("delete"), chosen),
        st.tuples(st.just("again")),
    )
    return declared, draw(st.lists(steps, max_size=6))


@dataclass
class SensorModel:
    """A sensor table as plain Python has it: rows by number, and every version that ever was."""

    alive: dict[int, tuple[int, Row, str]] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def at(self, places: set[int]) -> list[int]:
        """The numbers of the sensors at these places."""
        return [number for place, number in enumerate(self.alive) if place in places]

    def version(self, made: int) -> int:
        assert made not in self.used
        self.used.add(made)
        return made

    def insert(self, catalog: SensorCatalog, name: str, new: list[tuple[Row, str]]) -> None:
        made = catalog.insert_sensors(name, new)
        assert [(one.values, one.address) for one in made] == _like(new)
        for one, (values, address) in zip(made, new, strict=True):
            assert one.number not in self.alive
            self.alive[one.number] = (self.version(one.version), values, address)

    def update(
        self, catalog: SensorCatalog, name: str, places: set[int], new: tuple[Row, str]
    ) -> None:
        wanted = self.at(places)
        made = catalog.update_sensors(name, lambda _: {self.alive[one][0]: new for one in wanted})
        changed = [one for one in wanted if repr(self.alive[one][1:]) != repr(new)]
        assert [one.number for one in made] == changed
        for one in made:
            self.alive[one.number] = (self.version(one.version), *new)

    def delete(self, catalog: SensorCatalog, name: str, places: set[int]) -> None:
        wanted = self.at(places)
        gone = catalog.delete_sensors(name, lambda _: [self.alive[one][0] for one in wanted])
        assert [one.number for one in gone] == wanted
        for number in wanted:
            del self.alive[number]

    def again(self, catalog: SensorCatalog, name: str) -> None:
        declared = catalog.require_declaration(name)
        catalog.drop(ObjectKind.SENSOR_TABLE, name)
        catalog.create(declared)
        self.alive.clear()


class _Like:
    """Equal to what is written alike, so that NaN is itself."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return repr(self._value) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self._value))

    def __repr__(self) -> str:
        return repr(self._value)


def _like(pairs: list[tuple[Row, str]]) -> list[tuple[_Like, str]]:
    return [(_Like(values), address) for values, address in pairs]


@dataclass(frozen=True)
class Shared:
    """One catalog for all histories, where each has a name of its own."""

    catalog: SensorCatalog
    price: int
    """How many times fewer histories are tried."""


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    is_sqlite = request.param == "SQLite"
    if is_sqlite:
        url = str(tmp_path_factory.mktemp("histories") / "catalog.db")
    else:
        server: Postgres = request.getfixturevalue("postgres")
        url = server.new_database()
    with SensorCatalog.open(url) as catalog:
        yield Shared(catalog, 1 if is_sqlite else 4)


def _check(
    shared: Shared, cases: st.SearchStrategy[Any], examples: int, check: Callable[..., None]
) -> None:
    @settings(max_examples=examples // shared.price)
    @given(cases)
    def follow(case: Any) -> None:
        check(shared.catalog, case)

    follow()


def test_sensors_follow_any_history(shared: Shared) -> None:
    _check(shared, sensor_histories(), 40, _follow_sensors)


@pytest.mark.soak
def test_sensors_follow_many_histories(shared: Shared) -> None:
    _check(shared, sensor_histories(), 2000, _follow_sensors)


def _follow_sensors(catalog: SensorCatalog, history: tuple[Declaration, list[Step]]) -> None:
    declared, steps = history
    declared = replace(declared, name=f"Table{next(FRESH)}")
    name = declared.name.upper()
    catalog.create(declared)
    model = SensorModel()
    for verb, *arguments in steps:
        before = catalog.generation(name)
        getattr(model, verb)(catalog, name, *arguments)
        assert catalog.generation(name) > before
        sensors = catalog.sensors(name)
        assert [(one.number, one.version) for one in sensors] == [
            (number, version) for number, (version, _, _) in model.alive.items()
        ]
        assert [(one.values, one.address) for one in sensors] == _like(
            [(values, address) for _, values, address in model.alive.values()]
        )
    assert catalog.declaration(name) == declared
    _check_rows(catalog, declared, model)


def _check_rows(catalog: SensorCatalog, declared: Declaration, model: SensorModel) -> None:
    table = catalog.sensor_rows(declared.name)
    assert table[SENSOR].to_pylist() == [version for version, _, _ in model.alive.values()]
    assert table["Reading"].to_pylist() == [address for _, _, address in model.alive.values()]
    assert table.column_names.index("Reading") == declared.place
    assert table.drop_columns(["Reading", SENSOR]).schema == declared.static


NUMBERS = st.none() | st.integers(-3, 3)
WORDS = st.none() | st.sampled_from(["", "a", "it''s"])
STATEMENTS = st.one_of(
    st.tuples(st.just("insert"), st.lists(st.tuples(NUMBERS, WORDS), min_size=1, max_size=4)),
    st.tuples(st.just("update k"), st.integers(-3, 3)),
    st.tuples(st.just("update v"), st.integers(-3, 3), WORDS),
    st.tuples(st.just("delete"), st.integers(-3, 3)),
)


def test_rows_follow_any_statements(shared: Shared) -> None:
    cases = st.tuples(st.booleans(), st.lists(STATEMENTS, max_size=5))
    _check(shared, cases, 24, _follow_statements)


def _follow_statements(catalog: SensorCatalog, case: tuple[bool, list[Step]]) -> None:
    of_sensors, steps = case
    name = f"Rows{next(FRESH)}"
    if of_sensors:
        _run(catalog, f"CREATE SENSOR TABLE {name} (k INT, v STRING, r STREAM(x INT) FROM mqtt)")
    else:
        _run(catalog, f"CREATE TABLE {name} (k INT, v STRING)")
    model: list[tuple[int | None, str | None]] = []
    for step in steps:
        said = _run(catalog, _spell(name, step, of_sensors))
        touched, model = _apply(model, step)
        assert f" {touched} row" in said
        rows = catalog.sensor_rows(name) if of_sensors else catalog.table(name)
        assert [(row["k"], row["v"]) for row in rows.to_pylist()] == model


def _run(catalog: SensorCatalog, sql: str) -> str:
    (statement,) = read_statements(sql)
    return execute(catalog, cast(CatalogStatement, statement)).message


def _spell(name: str, step: Step, of_sensors: bool) -> str:
    match step:
        case ("insert", new):
            more = ", 'mqtt://127.0.0.1/t'" if of_sensors else ""
            return f"INSERT INTO {name} VALUES " + ", ".join(
                f"({_literal(k)}, {_literal(v)}{more})" for k, v in new
            )
        case ("update k", bound):
            return f"UPDATE {name} SET k = k - 1 WHERE k > {bound}"
        case ("update v", bound, word):
            return f"UPDATE {name} SET v = {_literal(word)}, k = k WHERE NOT k = {bound}"
        case (_, bound):
            return f"DELETE FROM {name} WHERE k = {bound} OR v IS NULL"
    raise AssertionError(step)


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _apply(
    model: list[tuple[int | None, str | None]], step: Step
) -> tuple[int, list[tuple[int | None, str | None]]]:
    """How many rows a statement touches, and what they are afterwards."""
    match step:
        case ("insert", new):
            return len(new), model + [(k, v and v.replace("''", "'")) for k, v in new]
        case ("update k", bound):
            touched = [k is not None and k > bound for k, _ in model]
            new = [
                (cast(int, k) - 1, v) if t else (k, v)
                for t, (k, v) in zip(touched, model, strict=True)
            ]
        case ("update v", bound, word):
            touched = [k is not None and k != bound for k, _ in model]
            said = word and word.replace("''", "'")
            new = [(k, said) if t else (k, v) for t, (k, v) in zip(touched, model, strict=True)]
        case (_, bound):
            touched = [k == bound or v is None for k, v in model]
            new = [row for t, row in zip(touched, model, strict=True) if not t]
    return sum(touched), new


def test_a_table_keeps_any_rows(shared: Shared) -> None:
    cases = schemas(1).flatmap(
        lambda schema: st.tuples(
            st.just(schema), st.lists(st.lists(rows(schema), max_size=4), max_size=5)
        )
    )
    _check(shared, cases, 24, _keep_rows)


def _keep_rows(catalog: SensorCatalog, case: tuple[pa.Schema, list[list[Row]]]) -> None:
    schema, pieces = case
    name = f"Kept{next(FRESH)}"
    catalog.create_table(name, schema)
    for piece in pieces:
        catalog.insert_rows(name, pa.Table.from_pylist(piece, schema))
    table = catalog.table(name)
    assert table is not None
    assert table.schema == schema
    expected = pa.Table.from_pylist([row for piece in pieces for row in piece], schema)
    assert repr(table.to_pylist()) == repr(expected.to_pylist())
    assert catalog.count_rows(name) == expected.num_rows
    half = expected.num_rows // 2
    catalog.change_rows(name, lambda old: old.slice(half))
    assert repr(catalog.table(name)) == repr(expected.slice(half).combine_chunks())
