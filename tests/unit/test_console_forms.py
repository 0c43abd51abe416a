"""The statements of forms: they read back as what was filled in, whatever that is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nilometer.database.limits import read_limits
from nilometer.database.query_status import QueryLimits
from nilometer.errors import InputError
from nilometer.server.console.form_statements import (
    Column,
    StreamForm,
    alter_limits,
    change_delivery,
    create_delivery,
    create_stream,
    insert_sensors,
    option_lines,
    text_literal,
)
from nilometer.sql.ddl.nodes import (
    AlterQuery,
    CreateDelivery,
    CreateSensorTable,
    CreateStream,
    Drop,
    Insert,
    StopDelivery,
)
from nilometer.sql.statements import read_one, read_statements

_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
_NAMES = _TEXTS.filter(lambda one: one.strip() == one and one.strip())


@given(_TEXTS)
@example("a\\nb")
@example("\\")
@example("it's")
def test_texts_stay_what_they_are(text: str) -> None:
    read = read_one(f"INSERT INTO T VALUES ({text_literal(text)})")
    assert isinstance(read, Insert)
    assert read.rows == ((text,),)


@given(_NAMES, _TEXTS)
@example("order", "http://x/")
@example("group", "C:\\new")
def test_a_stream_reads_back(name: str, address: str) -> None:
    form = StreamForm(
        name,
        "ts TIMESTAMP\nobj_id INT\nkind of thing STRING",
        "http",
        {"address": address, "interval": "5 s", "unit": ""},
        time="ts",
        lateness="5 SECONDS",
        history="30 DAYS",
    )
    read = read_one(create_stream(form))
    assert isinstance(read, CreateStream)
    assert read.name == name
    assert [one.name for one in read.stream.columns] == ["ts", "obj_id", "kind of thing"]
    given_ = {"address": address.strip(), "interval": "5 s"} if address.strip() else {}
    assert dict(read.stream.options) == (given_ or {"interval": "5 s"})
    assert (read.stream.time, read.stream.lateness) == ("ts", 5_000_000)


def test_a_sensor_table_comes_with_its_first_sensors() -> None:
    form = StreamForm(
        "Farm",
        "temperature DECIMAL(6, 2)",
        "http",
        static="place STRING\nfloor INT",
        sensors='barn, 1, http://10.0.0.7/\n"the ""old"" stable, west", -2, http://10.0.0.8/',
    )
    made, rows = read_statements(create_stream(form))
    assert isinstance(made, CreateSensorTable)
    assert [one.name for one in made.static] == ["place", "floor"]
    assert isinstance(rows, Insert)
    assert rows.rows == (
        ("barn", 1, "http://10.0.0.7/"),
        ('the "old" stable, west', -2, "http://10.0.0.8/"),
    )


def test_the_address_stands_where_the_table_has_its_stream() -> None:
    text = insert_sensors("Farm", [Column("place", "STRING")], 0, "barn, http://x/")
    read = read_one(text)
    assert isinstance(read, Insert)
    assert read.rows == (("http://x/", "barn"),)


@given(_NAMES, _NAMES, _TEXTS)
def test_a_delivery_reads_back(name: str, query: str, url: str) -> None:
    read = read_one(create_delivery(name, query, "webhook", {"url": url, "secret": "s"}))
    assert isinstance(read, CreateDelivery)
    assert (read.name, read.query, read.unit) == (name, query, "webhook")
    assert {key: one.value for key, one in read.options.items()} == (
        {"url": url.strip(), "secret": "s"} if url.strip() else {"secret": "s"}
    )
    assert isinstance(read_one(change_delivery("STOP", name)), StopDelivery)
    assert isinstance(read_one(change_delivery("DROP", name)), Drop)


def test_secrets_are_named_not_shown() -> None:
    text = create_delivery("d", "q", "webhook", {"url": "https://x", "secret": "secret('HOOK')"})
    assert "secret = secret('HOOK')" in text
    assert "secret = 'secret(''x'') OR 1'" in create_delivery(
        "d", "q", "webhook", {"secret": "secret('x') OR 1"}
    )


@given(_NAMES)
def test_limits_read_back(query: str) -> None:
    read = read_one(alter_limits(query, {"results": "2 GB", "state": "", "history": "7 days"}))
    assert isinstance(read, AlterQuery)
    assert read.name == query
    limits = read_limits(read.options, QueryLimits(state=5))
    assert limits == QueryLimits(results=2 << 30, state=None, history=7 * 86_400_000_000)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (StreamForm("", "v INT", "http"), "it needs a name"),
        (StreamForm("S", "", "http"), "a stream must have at least one column"),
        (StreamForm("S", "speed", "http"), "a column is a name and a type"),
        (StreamForm("S", "v INT", "http", {"a b": "x"}), "a b is not a valid option name"),
        (StreamForm("S", "v INT", "http", static=" "), "a sensor table has a column"),
        (StreamForm("S", "v INT", "http", static="n INT", sensors="x, h"), "x is not a number"),
        (StreamForm("S", "v INT", "http", static="n INT", sensors="1"), "a sensor has a value"),
    ],
)
def test_what_is_missing_is_reported(form: StreamForm, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        create_stream(form)


def test_options_are_lines() -> None:
    with pytest.raises(InputError, match="an option is name = value"):
        option_lines("interval 5 s")
    with pytest.raises(InputError, match="nothing has changed"):
        alter_limits("q", {})
