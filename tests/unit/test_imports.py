"""What is not used is not imported: `import nilometer` and the command line start quickly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SLOW = {
    *("alembic", "fastapi", "httpx", "matplotlib", "nicegui", "numpy", "paho", "pandas", "pyarrow"),
    *("pyspark", "scipy", "sklearn", "sqlalchemy", "sqlglot", "uvicorn"),
}
OF_COMMANDS = {"rich", "typer"}
REPORT = "import json; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{REPORT}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def run_command(option: str) -> str:
    return (
        f"from nilometer.cli import main\nsys.argv = ['nilometer', {option!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
    )


def test_importing_the_package_imports_little() -> None:
    assert not loaded_after("import nilometer") & (SLOW | OF_COMMANDS)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_commands_that_only_tell_import_little(option: str) -> None:
    assert not loaded_after(run_command(option)) & SLOW


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
