"""`make bench`: every measurement in its own process, then one table of ratios."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.measure import STEPS, TWO_STAGES, WINDOWED
from benchmarks.report import ratios

RESULTS: Final = Path("build", "bench.json")
_PATIENCE: Final = 600
_SHORT_PATIENCE: Final = {"near-spark": 150}
"""There Spark compares every pair of rows; the result is that it does not finish."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="measure these only, keep the rest as they are")
    names = parser.parse_args().names or [*STEPS, "kernel", "near-refusal", *WINDOWED, *TWO_STAGES]
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    measured: dict[str, Any] = _before() if len(names) < len(STEPS) else {}
    failed = []
    for number, name in enumerate(names, 1):
        started = time.monotonic()
        with console.status(f"{name} ({number} of {len(names)})"):
            result, complaint = _measure(name)
        seconds = time.monotonic() - started
        if result is None:
            failed.append(name)
            console.print(f"{number:3} {name:18} [red]failed[/] after {seconds:.0f} s: {complaint}")
            continue
        measured[name] = result
        console.print(f"{number:3} {name:18} {_short(result):42} {seconds:4.0f} s")
        RESULTS.write_text(json.dumps({"machine": _machine(), "measured": measured}, indent=1))
    rows = ratios(measured)
    _show(console, rows)
    listed = [row.to_json() for row in rows]
    content = {"machine": _machine(), "ratios": listed, "measured": measured}
    RESULTS.write_text(json.dumps(content, indent=1))
    console.print(f"all of it is in {RESULTS}")
    return 1 if failed else 0


def _before() -> dict[str, Any]:
    return json.loads(RESULTS.read_text())["measured"] if RESULTS.exists() else {}


def _measure(name: str) -> tuple[dict[str, Any] | None, str]:
    """A measurement, or the reason why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        patience = _SHORT_PATIENCE.get(name, _PATIENCE)
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.measure", name, str(answer)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "NILOMETER_SPARK_LOG": str(Path(folder, "spark.log"))},
        )
        try:
            _, complaints = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if name in _SHORT_PATIENCE:
                return {"unfinished_after_seconds": patience}, ""
            return None, f"not done within {patience} s"
        if process.returncode == 0 and answer.exists():
            return json.loads(answer.read_text()), ""
        lines = [line for line in complaints.splitlines() if line.strip()]
        return None, lines[-1] if lines else f"exit code {process.returncode}"


def _short(result: dict[str, Any]) -> str:
    if "rows_per_second" not in result:
        return str(result)[:42]
    return f"{result['rows_per_second']:>12,.0f} rows/s  {result['results']:>10,} checked"


def _show(console: Console, rows: list[Any]) -> None:
    table = Table(title="ratios, all measured in this run on checked results")
    for title, side in (
        ("", "left"),
        ("Nilometer", "right"),
        ("beside", "right"),
        ("ratio", "right"),
        ("wanted", "right"),
        ("", "left"),
    ):
        table.add_column(title, justify=side)
    for row in rows:
        table.add_row(row.what, row.ours, row.theirs, row.ratio, row.wanted, row.verdict)
    console.print(table)


def _machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": platform.system(),
    }


if __name__ == "__main__":
    sys.exit(main())
