"""`nilometer serve`: the database as a server."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from nilometer.extras import require_extras
from nilometer.model.secrets import SecretsHidden

_END_SECONDS: Final = 6.0
"""For how long the database may take to be closed, after requests have ended."""
_SPARK: Final = {
    # A statement that asks for too much memory fails; otherwise all of Spark would end with it.
    "spark.executor.killOnFatalError.depth": "0",
    "spark.driver.maxResultSize": "128m",
    # Nothing in a statement may name a file; should something get through, Spark refuses it, too.
    "spark.sql.runSQLOnFiles": "false",
}


def serve(
    *,
    db: Annotated[
        Path, typer.Option("--db", metavar="FOLDER", help="The database; made if missing.")
    ],
    catalog: Annotated[
        str | None, typer.Option("--catalog", metavar="URL", help="Its catalog in PostgreSQL.")
    ] = None,
    logs: Annotated[
        str | None,
        typer.Option("--logs", metavar="URI", help="Its logs, such as s3://bucket/folder."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE.toml", help="What else is to be set.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Where to listen; 127.0.0.1, only for this machine.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="8642 unless given; 0: any that is free.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE.pem", help="For TLS, with --key.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE.pem", help="For TLS.")] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen beyond this machine without encryption."),
    ] = False,
    cores: Annotated[
        int | None, typer.Option(min=1, help="How many cores Spark uses; all by default.")
    ] = None,
) -> None:
    """Serve a database: an HTTP API, results as they come, and a console for the browser.

    The first start prints a token; [bold]nilometer tokens[/] makes more of them.
    """
    require_extras("nilometer serve", "server")
    from nilometer.spark.session import start_in_background  # noqa: PLC0415  takes time to load

    _say("starting Spark …")
    spark = start_in_background(name="nilometer serve", cores=cores, config=_SPARK)
    from nilometer.server.config import read_config  # noqa: PLC0415  seconds, while Java starts
    from nilometer.server.serve import DatabasePlace, run_server  # noqa: PLC0415

    told = logging.StreamHandler()
    told.setFormatter(SecretsHidden("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[told], level=logging.WARNING)
    chosen = read_config(config)
    settings = chosen.settings
    settings = replace(
        settings,
        host=host or settings.host,
        port=settings.port if port is None else port,
        certificate=certificate or settings.certificate,
        key=key or settings.key,
        allow_insecure=insecure or settings.allow_insecure,
    )
    place = DatabasePlace(db, catalog, logs)

    def stopping() -> None:
        _end_within(settings.stop_seconds + _END_SECONDS)

    run_server(place, replace(chosen, settings=settings), _say, spark=spark, stopping=stopping)


def _end_within(seconds: float) -> None:
    """End the process after so long, whatever still runs in it: nothing acknowledged is lost.

    A statement that does not end would keep its thread, and the interpreter waits for threads.
    """

    def end() -> None:
        _say("what still ran was cut off; what was acknowledged is safe")
        os._exit(0)

    watch = threading.Timer(seconds, end)
    watch.daemon = True
    watch.start()


def _say(line: str) -> None:
    """Lines are read by programs, too: each goes out at once."""
    print(line, flush=True)  # noqa: T201
