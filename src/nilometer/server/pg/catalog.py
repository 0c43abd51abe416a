"""PostgreSQL's catalog for a database: for psql's \\d, drivers and dashboards.

The tables of the catalog are built from the names that statements can use, and queried with DuckDB.
Those that are always empty here (policies, triggers, publications …) have no columns: a join with
them returns no rows.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.past.guarded import GuardedSandbox
from nilometer.past.question import name_columns
from nilometer.past.sandbox import AnswerLimits, Cancelling
from nilometer.past.sqlglot_errors import sqlglot_errors
from nilometer.server.pg.catalog_tables import (
    ARRAYS,
    DATABASE,
    NAMES,
    SERVER_VERSION,
    Relations,
    catalog_tables,
)
from nilometer.version import VERSION

_MEMORY: Final = 128 << 20
_ALWAYS_EMPTY: Final = frozenset(
    {
        "pg_policy",
        "pg_policies",
        "pg_statistic_ext",
        "pg_publication",
        "pg_publication_rel",
        "pg_publication_namespace",
        "pg_publication_tables",
        "pg_inherits",
        "pg_trigger",
        "pg_rewrite",
        "pg_foreign_table",
        "pg_foreign_server",
        "pg_subscription",
        "pg_partitioned_table",
        "pg_event_trigger",
        "pg_extension",
        "pg_matviews",
        "pg_indexes",
        "pg_sequences",
        "pg_depend",
        "pg_locks",
        "pg_stat_activity",
        "pg_stat_user_tables",
        "pg_statio_user_tables",
        "pg_language",
        "pg_enum",
        "pg_proc",
        "pg_range",
        "pg_tablespace",
        "pg_operator",
        "pg_cast",
        "pg_aggregate",
        "key_column_usage",
        "table_constraints",
        "referential_constraints",
        "constraint_column_usage",
        "routines",
        "parameters",
        "sequences",
        "triggers",
        "views",
    }
)
_MACROS: Final = {
    "pg_get_userbyid": "(a) AS 'nilometer'",
    "pg_table_is_visible": "(a) AS true",
    "pg_type_is_visible": "(a) AS true",
    "pg_function_is_visible": "(a) AS true",
    "pg_collation_is_visible": "(a) AS true",
    "pg_get_expr": "(a, b) AS NULL, (a, b, c) AS NULL",
    "pg_get_indexdef": "(a) AS NULL, (a, b, c) AS NULL",
    "pg_get_constraintdef": "(a) AS NULL, (a, b) AS NULL",
    "pg_get_viewdef": "(a) AS NULL, (a, b) AS NULL",
    "pg_get_partkeydef": "(a) AS NULL",
    "pg_get_serial_sequence": "(a, b) AS NULL",
    "pg_relation_size": "(a) AS 0",
    "pg_table_size": "(a) AS 0",
    "pg_total_relation_size": "(a) AS 0",
    "pg_relation_is_publishable": "(a) AS false",
    "pg_encoding_to_char": "(a) AS 'UTF8'",
    "pg_backend_pid": "() AS 0",
    "pg_is_in_recovery": "() AS false",
    "pg_my_temp_schema": "() AS 0",
    "pg_postmaster_start_time": "() AS now()",
    "obj_description": "(a) AS NULL, (a, b) AS NULL",
    "col_description": "(a, b) AS NULL",
    "shobj_description": "(a, b) AS NULL",
    "has_table_privilege": "(a, b) AS true, (a, b, c) AS true",
    "has_schema_privilege": "(a, b) AS true, (a, b, c) AS true",
    "has_database_privilege": "(a, b) AS true, (a, b, c) AS true",
    "has_column_privilege": "(a, b, c) AS true, (a, b, c, d) AS true",
    "quote_ident": "(a) AS a",
    "current_setting": "(a) AS '', (a, b) AS ''",
    "set_config": "(a, b, c) AS b",
    "format_type": "(a, b) AS pg_type_name(a)",
    "to_regclass": "(a) AS NULL",
    "to_regtype": "(a) AS NULL",
    "txid_current": "() AS 0",
    "inet_server_addr": "() AS NULL",
    "inet_server_port": "() AS NULL",
    "pg_char_to_encoding": "(a) AS 6",
    "pg_conf_load_time": "() AS now()",
    "pg_size_pretty": "(a) AS a::VARCHAR",
    "current_schemas": "(a) AS ['pg_catalog', 'public']",
    "_pg_expandarray": "(a) AS {'x': 0, 'n': 0}",
}
_CONSTANTS: Final = {
    "current_version": f"PostgreSQL {SERVER_VERSION} (Nilometer {VERSION})",
    "version": f"PostgreSQL {SERVER_VERSION} (Nilometer {VERSION})",
    "current_schema": "public",
    "current_database": DATABASE,
    "current_catalog": DATABASE,
    "current_user": DATABASE,
    "session_user": DATABASE,
    "current_role": DATABASE,
    "user": DATABASE,
}


class PgCatalog:
    """Answers queries to PostgreSQL's catalog."""

    def __init__(self) -> None:
        cases = " ".join(f"WHEN {oid} THEN '{shown}'" for oid, (_, shown, _) in NAMES.items())
        arrays = " ".join(f"WHEN {a} THEN '{NAMES[o][1]}[]'" for o, a in ARRAYS.items())
        macros = {"pg_type_name": f"(a) AS CASE a {cases} {arrays} ELSE '???' END"}
        prefixed = {
            name: body.replace("pg_type_name(", "pg_fn_pg_type_name(")
            for name, body in {**macros, **_MACROS}.items()
        }
        self._functions = frozenset(prefixed)
        self._sandbox = GuardedSandbox(
            _MEMORY, {f"pg_fn_{name}": body for name, body in prefixed.items()}
        )

    def close(self) -> None:
        self._sandbox.close()

    def answer(
        self,
        tree: exp.Query,
        relations: Relations,
        max_bytes: int,
        cancelling: Cancelling | None = None,
    ) -> pa.Table:
        """The answer to a query that reads the catalog, or nothing at all."""
        tree = tree.copy()
        name_columns(tree)
        if _reads_nothing(tree):
            return _no_rows(tree)
        names = _rename_tables(tree)
        rewritten = self._with_our_functions(tree)
        tables = catalog_tables(relations) if names else {}
        for name in names:
            if name not in tables:
                raise SqlError(f"there is no table {name} in the catalog")
        with sqlglot_errors("this is not supported in a query over the catalog"):
            sql = rewritten.sql(dialect="duckdb", comments=False)
        self._sandbox.require_safe(sql, names)
        limits = AnswerLimits(bytes=max_bytes, seconds=10)
        inputs = {name: tables[name] for name in names}
        return self._sandbox.run(sql, inputs, limits, cancelling)

    def _with_our_functions(self, tree: exp.Expr) -> exp.Expr:
        """The same query with PostgreSQL's own functions translated to DuckDB."""

        for node in reversed(list(tree.walk(bfs=False))):  # innermost nodes first
            changed = self._changed(node)
            if changed is node:
                continue
            if node is tree:
                tree = changed
            else:
                node.replace(changed)
        return tree

    def _changed(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func | exp.Literal):
            called: exp.Expr = node.expression
            return called
        if isinstance(node, exp.Collate):
            inner: exp.Expr = node.this
            return inner
        if isinstance(node, exp.Operator):
            return _operator(node)
        if isinstance(node, exp.Cast):
            name = _registered(node)
            return node if name is None else _cast_to_registered(node, name)
        if not isinstance(node, exp.Func):
            return node
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if name in _CONSTANTS:
            return exp.Literal.string(_CONSTANTS[name])
        if name == "json_build_object":
            return exp.Anonymous(this="json_object", expressions=node.expressions)
        if name in self._functions:
            arguments = [one for one in node.iter_expressions() if isinstance(one, exp.Expr)]
            return exp.Anonymous(this=f"pg_fn_{name}", expressions=arguments)
        return node


def is_for_catalog(tree: exp.Query) -> bool:
    """Whether a query reads the catalog, or nothing at all."""
    entries = [one for one in tree.find_all(exp.Table) if isinstance(one.this, exp.Identifier)]
    mine = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    entries = [one for one in entries if one.db or one.name.lower() not in mine]
    return all(_is_of_catalog(one) for one in entries)


def _is_of_catalog(entry: exp.Table) -> bool:
    schema = entry.db.lower()
    return schema in ("pg_catalog", "information_schema") or (
        not schema and entry.name.lower().startswith("pg_")
    )


def _rename_tables(tree: exp.Expr) -> set[str]:
    """Give catalog tables names of one part; return those names."""
    names = set()
    for entry in tree.find_all(exp.Table):
        if isinstance(entry.this, exp.Identifier) and _is_of_catalog(entry):
            schema, name = entry.db.lower(), entry.name.lower()
            table_name = f"is_{name}" if schema == "information_schema" else name
            if not entry.alias:
                entry.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
            entry.set("this", exp.to_identifier(table_name, quoted=True))
            entry.set("db", None)
            entry.set("catalog", None)
            names.add(table_name)
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return names


def _reads_nothing(tree: exp.Query) -> bool:
    """Whether the rows of a query come from a table that is always empty."""
    if isinstance(tree, exp.SetOperation):
        return _reads_nothing(tree.left) and _reads_nothing(tree.right)
    if not isinstance(tree, exp.Select):
        return False
    source = tree.args.get("from_")
    entries = [] if source is None else [source.this]
    entries += [one.this for one in tree.args.get("joins") or () if not one.side]
    return any(
        isinstance(one, exp.Table) and one.name.lower() in _ALWAYS_EMPTY and _is_of_catalog(one)
        for one in entries
    )


def _no_rows(tree: exp.Query) -> pa.Table:
    select = tree
    while isinstance(select, exp.SetOperation):
        select = select.left
    names = [one.alias_or_name or "?column?" for one in select.selects]
    return pa.Table.from_arrays([pa.array([], pa.string()) for _ in names], names)


def _operator(node: exp.Operator) -> exp.Expr:
    """`a OPERATOR(pg_catalog.~) b`."""
    operator = str(node.args["operator"]).rpartition(".")[2]
    kinds: dict[str, type[exp.Expr]] = {
        "=": exp.EQ,
        "<>": exp.NEQ,
        "~~": exp.Like,
        "~": exp.RegexpLike,
    }
    if operator not in kinds:
        raise SqlError(f"there is no operator {operator} for the catalog")
    return kinds[operator](this=node.this, expression=node.expression)


def _registered(node: exp.Cast) -> str | None:
    """The name of a type such as regclass, if a value is cast to one."""
    shown = node.to.sql(dialect="postgres").lower().rpartition(".")[2]
    known = ("regclass", "regtype", "regproc", "regnamespace", "regrole", "name", "oid", "char")
    if shown in known:
        return shown
    return "text" if shown == "text" and "." in node.to.sql(dialect="postgres") else None


def _cast_to_registered(node: exp.Cast, name: str) -> exp.Expr:
    kind = "BIGINT" if name == "oid" else "VARCHAR"
    if name in ("regclass", "regproc") and node.this.is_string:
        return exp.Literal.string(node.this.name)
    return exp.cast(node.this, kind, dialect="duckdb")
