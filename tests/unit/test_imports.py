"""What is not used is not imported: `import nilometer` and the command line start quickly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = {
    *("alembic", "fastapi", "httpx", "matplotlib", "nicegui", "numpy", "paho", "pandas", "pyarrow"),
    *("pyspark", "scipy", "sklearn", "sqlalchemy", "sqlglot", "uvicorn"),
}
OF_COMMANDS = {"rich", "typer"}
REPORT = "import json; print(json.dumps(sorted(sys.modules)))"
PATTERNS = {
    "nilometer.kernels.match_search",
    "nilometer.operators.match_rows",
    "nilometer.operators.match_spec",
    "nilometer.sql.bind.windowed.bind_match",
}
OVER = {"nilometer.operators.over_rows", "nilometer.sql.bind.windowed.bind_over"}
OVER_TABLES = {"nilometer.operators.table_over", "nilometer.sql.bind.windowed.bind_table_over"}
GROUPS = {"nilometer.operators.aggregate", "nilometer.sql.bind.windowed.bind_changes"}
NEVER = {"cryptography", "duckdb", "httpx", "pandas", "pyspark", "sqlalchemy", "ssl"}


def loaded_after(code: str) -> set[str]:
    """The packages that are imported by then."""
    return {name.partition(".")[0] for name in modules_after(code)}


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{REPORT}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def run_command(*arguments: str) -> str:
    return (
        f"from nilometer.cli import main\nsys.argv = ['nilometer', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
    )


def test_importing_the_package_imports_little() -> None:
    assert not loaded_after("import nilometer") & (SLOW | OF_COMMANDS)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_commands_that_only_tell_import_little(option: str) -> None:
    assert not loaded_after(run_command(option)) & SLOW


@pytest.mark.parametrize(
    ("question", "used", "unused"),
    [
        ("SELECT k, v FROM A WHERE v > 1", set(), GROUPS | OVER | OVER_TABLES | PATTERNS),
        (
            "SELECT k, COUNT(*) FROM A [RANGE 1 MINUTE] GROUP BY k",
            GROUPS,
            OVER | OVER_TABLES | PATTERNS,
        ),
        ("SELECT k, LAG(v) OVER (ORDER BY ts) FROM A", OVER, OVER_TABLES | PATTERNS),
        ("SELECT k, RANK() OVER (ORDER BY k) FROM T", OVER_TABLES, PATTERNS),
        (
            "SELECT * FROM A MATCH_RECOGNIZE (ORDER BY ts MEASURES Y.v AS v PATTERN (X Y) "
            "DEFINE Y AS Y.v > X.v)",
            PATTERNS,
            OVER_TABLES,
        ),
    ],
)
def test_questions_import_what_they_need(
    question: str, used: set[str], unused: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("k,v,ts\na,1,2026-01-31 12:00:00\nb,2,2026-01-31 12:00:10\n")
    sources = ("--stream", f"A={file}:ts", "--table", f"T={file}")
    modules = modules_after(run_command("sql", question, *sources))
    assert used <= modules
    assert not modules & (unused | NEVER)


def test_the_client_imports_no_engine() -> None:
    loaded = loaded_after("import nilometer\nnilometer.Client")
    assert "httpx" in loaded
    assert not loaded & (SLOW - {"httpx", "numpy", "pyarrow"})


@pytest.mark.parametrize("module", ["engine_source", "log_envelopes", "result_log"])
def test_processes_that_only_plan_for_spark_import_neither_sql_nor_pandas(module: str) -> None:
    loaded = loaded_after(f"import nilometer.spark.{module}")
    assert "pyspark" in loaded
    assert not loaded & {"pandas", "sqlglot", "sqlalchemy", "scipy"}


def test_the_measure_sees_what_is_imported() -> None:
    assert loaded_after("import nilometer\nnilometer.Database") >= {"pyspark", "sqlglot", "numpy"}
