"""The log output of Spark and its processes: to a file, or line by line to a function."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

LOG_VARIABLE: Final = "NILOMETER_SPARK_LOG"
_PIPE_BYTES: Final = 1 << 20
"""How many bytes may wait while this process is busy; beyond that Spark waits, too."""
_LONGEST_LINE: Final = 64 << 10
_SET_PIPE_SIZE: Final = getattr(fcntl, "F_SETPIPE_SZ", None)
"""Only Linux has this."""
_LOG4J2: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC} %p %c{1}: %m%n%ex
"""


def terse_log(folder: Path) -> Path:
    """A file that sets up Spark's log: warnings, to standard error, with times in UTC."""
    file = folder / "log4j2.properties"
    file.write_text(_LOG4J2)
    return file


@contextmanager
def said_to(say: Callable[[bytes], None] | None, scratch: Path) -> Iterator[int]:
    """The standard error with which Java is started.

    Without `say`, that is the file that NILOMETER_SPARK_LOG names, or one in a scratch folder.
    """
    if say is None:
        file = os.environ.get(LOG_VARIABLE) or scratch / "spark.log"
        given = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    else:
        reading, given = os.pipe()
        with suppress(OSError):
            if _SET_PIPE_SIZE is not None:
                fcntl.fcntl(given, _SET_PIPE_SIZE, _PIPE_BYTES)
        threading.Thread(target=_read, args=(reading, say), name="Spark's log", daemon=True).start()
    try:
        yield given
    finally:
        os.close(given)


def _read(reading: int, say: Callable[[bytes], None]) -> None:
    """Pass on line after line, until all writers have ended."""
    with os.fdopen(reading, "rb") as lines:
        while line := lines.readline(_LONGEST_LINE):
            with suppress(Exception):  # whatever is wrong with the disk: Spark must not wait for it
                say(line)
