"""The tables of pg_catalog and information_schema, as clients expect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from nilometer.server.pg import values as pg

Relations = Mapping[str, tuple[str, Sequence[tuple[str, pa.DataType]]]]
"""By name: the kind of relation (r, v), and its columns."""
SERVER_VERSION: Final = "16.0"
DATABASE: Final = "nilometer"
_PUBLIC: Final = 2200
_SYSTEM: Final = 11
_OWNER: Final = 10
_FIRST: Final = 16384
NAMES: Final = {
    pg.BOOL: ("bool", "boolean", "B"),
    pg.BYTEA: ("bytea", "bytea", "U"),
    pg.INT8: ("int8", "bigint", "N"),
    pg.INT2: ("int2", "smallint", "N"),
    pg.INT4: ("int4", "integer", "N"),
    pg.TEXT: ("text", "text", "S"),
    pg.JSON: ("json", "json", "U"),
    pg.FLOAT4: ("float4", "real", "N"),
    pg.FLOAT8: ("float8", "double precision", "N"),
    pg.DATE: ("date", "date", "D"),
    pg.TIME: ("time", "time without time zone", "D"),
    pg.TIMESTAMP: ("timestamp", "timestamp without time zone", "D"),
    pg.TIMESTAMPTZ: ("timestamptz", "timestamp with time zone", "D"),
    pg.INTERVAL: ("interval", "interval", "T"),
    pg.NUMERIC: ("numeric", "numeric", "N"),
    19: ("name", "name", "S"),
    26: ("oid", "oid", "N"),
    1043: ("varchar", "character varying", "S"),
}
ARRAYS: Final = {
    oid: pg.pg_type(pa.list_(kind)).oid
    for oid, kind in (
        (pg.BOOL, pa.bool_()),
        (pg.INT2, pa.int16()),
        (pg.INT4, pa.int32()),
        (pg.INT8, pa.int64()),
        (pg.TEXT, pa.string()),
        (pg.FLOAT4, pa.float32()),
        (pg.FLOAT8, pa.float64()),
        (pg.DATE, pa.date32()),
        (pg.TIMESTAMP, pa.timestamp("us")),
        (pg.TIMESTAMPTZ, pa.timestamp("us", "UTC")),
        (pg.NUMERIC, pa.decimal128(38, 9)),
    )
}


def catalog_tables(relations: Relations) -> dict[str, pa.Table]:
    """The tables of the catalog, as far as clients query them."""
    numbers = {name: _FIRST + place for place, name in enumerate(sorted(relations))}
    classes, attributes, tables, columns = [], [], [], []
    for name, (kind, own) in sorted(relations.items()):
        classes.append(_class(numbers[name], name, kind, len(own)))
        shown = "VIEW" if kind == "v" else "BASE TABLE"
        tables.append(_of_database(name) | {"table_type": shown, "is_insertable_into": "NO"})
        for place, (column, arrow) in enumerate(own, 1):
            oid = pg.pg_type(arrow).oid
            attributes.append(_attribute(numbers[name], column, oid, place))
            columns.append(_of_database(name) | _column(column, oid, place))
    return {
        "pg_class": _table(classes, _class(0, "", "r", 0)),
        "pg_attribute": _table(attributes, _attribute(0, "", 0, 0)),
        "pg_namespace": _table(_NAMESPACES, _NAMESPACES[0]),
        "pg_type": _table(_types(), _types()[0]),
        "pg_am": _table([{"oid": 2, "amname": "heap", "amtype": "t"}], None),
        "pg_database": _table([_DATABASE_ROW], None),
        "pg_roles": _table([_ROLE], None),
        "pg_user": _table([{"usename": DATABASE, "usesysid": _OWNER, "usesuper": False}], None),
        "pg_authid": _table([_ROLE], None),
        "pg_settings": _table(_SETTINGS, None),
        "pg_tables": _table(
            [_pg_table(name) for name, (k, _) in relations.items() if k == "r"], _pg_table("")
        ),
        "pg_views": _table(
            [_pg_view(name) for name, (k, _) in relations.items() if k == "v"], _pg_view("")
        ),
        **{name: _table([], row) for name, row in _EMPTY.items()},
        "is_tables": _table(
            tables, _of_database("") | {"table_type": "", "is_insertable_into": ""}
        ),
        "is_columns": _table(columns, _of_database("") | _column("", 25, 0)),
        "is_schemata": _table(
            [{"catalog_name": DATABASE, "schema_name": one["nspname"]} for one in _NAMESPACES], None
        ),
    }


_NAMESPACES: Final[list[dict[str, Any]]] = [
    {"oid": _PUBLIC, "nspname": "public", "nspowner": _OWNER, "nspacl": []},
    {"oid": _SYSTEM, "nspname": "pg_catalog", "nspowner": _OWNER, "nspacl": []},
    {"oid": 12, "nspname": "information_schema", "nspowner": _OWNER, "nspacl": []},
]
_DATABASE_ROW: Final = {
    "oid": 1,
    "datname": DATABASE,
    "datdba": _OWNER,
    "encoding": 6,
    "datcollate": "C",
    "datctype": "C",
    "datallowconn": True,
    "datistemplate": False,
    "datacl": [],
    "datlocprovider": "c",
    "daticulocale": "",
    "daticurules": "",
    "datcollversion": "",
    "dattablespace": 0,
}
_ROLE: Final = {
    "oid": _OWNER,
    "rolname": DATABASE,
    "rolsuper": False,
    "rolinherit": True,
    "rolcreaterole": False,
    "rolcreatedb": False,
    "rolcanlogin": True,
    "rolconnlimit": -1,
    "rolvaliduntil": "",
    "rolreplication": False,
    "rolbypassrls": False,
}
_SETTINGS: Final = [
    {"name": name, "setting": value, "unit": "", "category": "", "short_desc": ""}
    for name, value in (
        ("server_version", SERVER_VERSION),
        ("server_version_num", "160000"),
        ("TimeZone", "UTC"),
        ("max_index_keys", "32"),
        ("standard_conforming_strings", "on"),
    )
]
_EMPTY: Final[dict[str, dict[str, Any]]] = {
    "pg_attrdef": {"oid": 0, "adrelid": 0, "adnum": 0, "adbin": ""},
    "pg_index": {
        "indexrelid": 0,
        "indrelid": 0,
        "indisprimary": False,
        "indisunique": False,
        "indisclustered": False,
        "indisvalid": True,
        "indisreplident": False,
        "indkey": "",
        "indnatts": 0,
        "indnkeyatts": 0,
        "indclass": "",
        "indoption": "",
        "indexprs": "",
        "indpred": "",
        "indcollation": "",
        "indnullsnotdistinct": False,
    },
    "pg_constraint": {
        "oid": 0,
        "conname": "",
        "connamespace": 0,
        "contype": "",
        "conrelid": 0,
        "confrelid": 0,
        "conindid": 0,
        "conkey": "",
        "confkey": "",
        "conparentid": 0,
        "contypid": 0,
        "condeferrable": False,
        "condeferred": False,
        "confupdtype": "",
        "confdeltype": "",
        "confmatchtype": "",
        "conislocal": True,
    },
    "pg_sequence": {
        "seqrelid": 0,
        "seqtypid": 0,
        "seqstart": 0,
        "seqincrement": 0,
        "seqmax": 0,
        "seqmin": 0,
        "seqcache": 0,
        "seqcycle": False,
    },
    "pg_auth_members": {"roleid": 0, "member": 0, "grantor": 0, "admin_option": False},
    "pg_description": {"objoid": 0, "classoid": 0, "objsubid": 0, "description": ""},
    "pg_shdescription": {"objoid": 0, "classoid": 0, "description": ""},
    "pg_collation": {"oid": 0, "collname": "", "collnamespace": 0},
    "pg_proc": {
        "oid": 0,
        "proname": "",
        "pronamespace": 0,
        "prorettype": 0,
        "proargtypes": "",
        "proowner": 0,
        "prokind": "",
        "proretset": False,
    },
}


def _class(oid: int, name: str, kind: str, columns: int) -> dict[str, Any]:
    zero = ("reltype", "reloftype", "reltablespace", "reltoastrelid", "relchecks", "relfrozenxid")
    no = (
        "relhasindex",
        "relisshared",
        "relhasrules",
        "relhastriggers",
        "relhassubclass",
        "relrowsecurity",
        "relforcerowsecurity",
        "relispartition",
        "relhasoids",
    )
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": _PUBLIC,
        "relowner": _OWNER,
        "relam": 2,
        "relkind": kind,
        "relnatts": columns,
        "relpersistence": "p",
        "relreplident": "n",
        "relpages": 0,
        "reltuples": -1.0,
        "relacl": [],
        "reloptions": [],
        "relpartbound": "",
        **dict.fromkeys(zero, 0),
        **dict.fromkeys(no, False),
    }


def _attribute(relation: int, name: str, oid: int, place: int) -> dict[str, Any]:
    return {
        "attrelid": relation,
        "attname": name,
        "atttypid": oid,
        "attnum": place,
        "atttypmod": -1,
        "attlen": pg.PgType(oid).size,
        "attndims": 0,
        "attnotnull": False,
        "atthasdef": False,
        "atthasmissing": False,
        "attidentity": "",
        "attgenerated": "",
        "attisdropped": False,
        "attislocal": True,
        "attinhcount": 0,
        "attcollation": 0,
        "attstattarget": -1,
        "attstorage": "p",
        "attcompression": "",
        "attacl": [],
        "attoptions": [],
        "attfdwoptions": [],
    }


def _types() -> list[dict[str, Any]]:
    types = []
    for oid, (name, _, category) in NAMES.items():
        array = ARRAYS.get(oid, 0)
        types.append(_type(oid, name, category, 0, array))
        if array:
            types.append(_type(array, f"_{name}", "A", oid, 0))
    return types


def _type(oid: int, name: str, category: str, item: int, array: int) -> dict[str, Any]:
    return {
        "oid": oid,
        "typname": name,
        "typnamespace": _SYSTEM,
        "typowner": _OWNER,
        "typlen": pg.PgType(oid).size,
        "typtype": "b",
        "typcategory": category,
        "typdelim": ",",
        "typelem": item,
        "typarray": array,
        "typrelid": 0,
        "typbasetype": 0,
        "typtypmod": -1,
        "typnotnull": False,
        "typcollation": 0,
        "typndims": 0,
        "typinput": "",
        "typoutput": "",
        "typreceive": "",
        "typdefault": "",
        "typisdefined": True,
    }


def _of_database(name: str) -> dict[str, Any]:
    return {"table_catalog": DATABASE, "table_schema": "public", "table_name": name}


def _column(name: str, oid: int, place: int) -> dict[str, Any]:
    items = {array: item for item, array in ARRAYS.items()}
    shown = "ARRAY" if oid in items else NAMES[oid][1]
    return {
        "column_name": name,
        "ordinal_position": place,
        "column_default": "",
        "is_nullable": "YES",
        "data_type": shown,
        "udt_name": f"_{NAMES[items[oid]][0]}" if oid in items else NAMES[oid][0],
        "udt_schema": "pg_catalog",
        "character_maximum_length": 0,
        "numeric_precision": 0,
        "numeric_scale": 0,
        "is_identity": "NO",
        "is_generated": "NEVER",
        "collation_name": "",
    }


def _pg_table(name: str) -> dict[str, Any]:
    return {"schemaname": "public", "tablename": name, "tableowner": DATABASE, "hasindexes": False}


def _pg_view(name: str) -> dict[str, Any]:
    return {"schemaname": "public", "viewname": name, "viewowner": DATABASE, "definition": ""}


def _table(rows: Sequence[Mapping[str, Any]], like: Mapping[str, Any] | None) -> pa.Table:
    """Rows as a table, even if there are none."""
    first = like or rows[0]
    schema = pa.schema([(name, _KINDS[type(value)]) for name, value in first.items()])
    return pa.Table.from_pylist([dict(one) for one in rows], schema=schema)


_KINDS: Final = {
    int: pa.int64(),
    str: pa.string(),
    bool: pa.bool_(),
    float: pa.float64(),
    list: pa.list_(pa.string()),
}
