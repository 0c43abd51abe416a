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
from nilometer.model.events import event

_LOG: Final = logging.getLogger("nilometer.server")
_END_SECONDS: Final = 6.0
"""How long closing the database may take after requests have ended."""
_SPARK: Final = {
    # A statement that needs too much memory fails; otherwise all of Spark would end with it.
    "spark.executor.killOnFatalError.depth": "0",
    "spark.driver.maxResultSize": "128m",
    # No statement may name a file; should one do so anyway, Spark refuses it, too.
    "spark.sql.runSQLOnFiles": "false",
}


def serve(  # noqa: PLR0913  the options of a command
    *,
    db: Annotated[
        Path, typer.Option("--db", metavar="FOLDER", help="The database; created if missing.")
    ],
    catalog: Annotated[
        str | None, typer.Option("--catalog", metavar="URL", help="Its catalog in PostgreSQL.")
    ] = None,
    logs: Annotated[
        str | None,
        typer.Option("--logs", metavar="URI", help="Its logs, such as s3://bucket/folder."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE.toml", help="A file with further settings."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Where to listen; by default 127.0.0.1, for this machine only."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="8642 by default; 0: any free port.")
    ] = None,
    pg_port: Annotated[
        int | None,
        typer.Option(
            "--pg-port", min=0, max=65535, help="Speak PostgreSQL's protocol, too: psql, Grafana …"
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE.pem", help="For TLS, with --key.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE.pem", help="For TLS.")] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Accept other machines without encryption."),
    ] = False,
    cores: Annotated[
        int | None, typer.Option(min=1, help="How many cores Spark uses; all by default.")
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A cluster that runs the queries: spark://host:7077, …"),
    ] = None,
    log_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="server.log in the database; -: standard error."),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(metavar="FORMAT", help="text or json.")] = None,
) -> None:
    """Serve a database: an HTTP API, results as they come, and a console for the browser.

    The first start prints a token; [bold]nilometer tokens[/] makes more of them.
    """
    require_extras("nilometer serve", "server")
    from nilometer.server.log_settings import read_log_settings  # noqa: PLC0415
    from nilometer.server.server_log import ServerLog  # noqa: PLC0415
    from nilometer.server.spark_settings import read_spark_settings  # noqa: PLC0415

    log = ServerLog(read_log_settings(config, file=log_file, level=log_level, format=log_format))
    log.begin()
    chosen_spark = read_spark_settings(config, master)
    from nilometer.spark.session import start_in_background  # noqa: PLC0415  takes time to load

    _say("starting Spark …")
    spark = start_in_background(
        name="nilometer serve",
        cores=cores,
        config={**_SPARK, **chosen_spark.config},
        said=log.spark.take,
        master=chosen_spark.master,
    )
    from nilometer.server.config import read_config  # noqa: PLC0415  seconds, while Java starts
    from nilometer.server.serve import DatabasePlace, run_server  # noqa: PLC0415

    chosen = read_config(config)
    settings = chosen.settings
    settings = replace(
        settings,
        host=host or settings.host,
        port=settings.port if port is None else port,
        pg_port=settings.pg_port if pg_port is None else pg_port,
        certificate=certificate or settings.certificate,
        key=key or settings.key,
        allow_insecure=insecure or settings.allow_insecure,
    )
    place = DatabasePlace(db, catalog, logs)

    def stopping() -> None:
        _end_within(settings.stop_seconds + _END_SECONDS)

    chosen = replace(chosen, settings=settings, log=log.settings)
    run_server(place, chosen, _say, spark=spark, stopping=stopping, log=log)


def _end_within(seconds: float) -> None:
    """End the process after this long, whatever still runs: nothing acknowledged is lost.

    A statement that does not end would keep its thread, and the interpreter waits for threads.
    """

    def end() -> None:
        message = "running work was interrupted; everything acknowledged is safe"
        _say(message)
        _LOG.warning(message, extra=event("cut_off", seconds=seconds))
        os._exit(0)

    watch = threading.Timer(seconds, end)
    watch.daemon = True
    watch.start()


def _say(line: str) -> None:
    """Programs read these lines, too: each is flushed at once."""
    print(line, flush=True)  # noqa: T201
