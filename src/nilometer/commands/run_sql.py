"""`nilometer sql` and `nilometer explain`: statements over files, on the engine that fits.

Small queries are answered in this process, if it supports them exactly as Spark does; others on
Spark.
"""

from __future__ import annotations

from nilometer.commands.options import EngineName
from nilometer.commands.progress import Progress
from nilometer.commands.request import Request
from nilometer.errors import InstallationError, OnlySparkError
from nilometer.extras import require_extras
from nilometer.garbage import collect_as_usual


def run_sql(request: Request, progress: Progress) -> None:
    """Answer the statements in order."""
    if request.server is not None:
        from nilometer.commands.run_on_server import run_on_server  # noqa: PLC0415

        collect_as_usual()
        run_on_server(request.server, request, progress)
        return
    statements = request.statements()
    if request.engine is not EngineName.SPARK:
        from nilometer.commands.run_here import run_here  # noqa: PLC0415  takes its time

        collect_as_usual()
        try:
            run_here(request, statements, progress)
            return
        except OnlySparkError as error:
            engine = _spark_because(request, error)
    else:
        engine = _spark_as_asked_for()
    progress.say("Starting Spark")
    from nilometer.commands.run_on_spark import run_on_spark  # noqa: PLC0415

    collect_as_usual()
    run_on_spark(request, statements, progress, engine)


def run_explain(request: Request, form: str, progress: Progress) -> None:
    """Show the plans of the statements."""
    if request.server is not None:
        from nilometer.commands.run_on_server import explain_on_server  # noqa: PLC0415

        explain_on_server(request.server, request, form, progress)
        return
    statements = request.statements()
    if request.engine is not EngineName.SPARK:
        from nilometer.commands.run_here import explain_here  # noqa: PLC0415

        try:
            explain_here(request, statements, form, progress)
            return
        except OnlySparkError as error:
            engine = _spark_because(request, error)
    else:
        engine = _spark_as_asked_for()
    progress.say("Starting Spark")
    from nilometer.commands.run_on_spark import explain_on_spark  # noqa: PLC0415

    explain_on_spark(request, statements, form, progress, engine)


def _spark_as_asked_for() -> str:
    require_extras("--engine spark", "spark")
    return "Spark, as asked for"


def _spark_because(request: Request, error: OnlySparkError) -> str:
    """Why Spark must answer; raises if it must not, or cannot."""
    if request.engine is EngineName.LOCAL:
        error.hint = error.hint or "leave --engine local out to use Spark"
        raise error
    try:
        require_extras("nilometer sql", "spark")
    except InstallationError as missing:
        missing.detail = error.message
        raise missing from None
    return f"Spark, because {error.message}"
