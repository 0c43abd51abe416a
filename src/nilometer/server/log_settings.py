"""The log settings of a server; read before anything slow is loaded."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer.server.config_values import folder_of, read_toml, read_values, table

STDERR: Final = "-"
LOG_FILE: Final = "server.log"
"""Its name in the folder of the database, unless another one is given."""
SPARK_LOG_VARIABLE: Final = "NILOMETER_SPARK_LOG"
LEVELS: Final = ("debug", "info", "warning", "error")


class LogFormat(StrEnum):
    """The format of a line."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class LogSettings:
    """Where the log is written, what it contains, and how much of it is kept."""

    file: Path | None = None
    """`-`: standard error; None: server.log in the folder of the database."""
    level: str = "info"
    format: str = LogFormat.TEXT
    max_bytes: int = 10 << 20
    """The size at which a file is rotated."""
    files: int = 5
    """The number of files kept, including the current one."""
    slow_seconds: float = 5.0
    """A statement that takes longer is logged."""
    access: bool = False
    """Whether every request is logged."""

    def __post_init__(self) -> None:
        _require("level", self.level, LEVELS)
        _require("format", self.format, tuple(LogFormat))

    @property
    def to_stderr(self) -> bool:
        return self.file is not None and str(self.file) == STDERR

    @property
    def number(self) -> int:
        """The level as Python's logging counts it."""
        return logging.getLevelNamesMapping()[self.level.upper()]

    def file_in(self, database: Path) -> Path | None:
        """The file of a server over this folder; None: standard error."""
        return None if self.to_stderr else self.file or database / LOG_FILE

    def spark_file_in(self, database: Path) -> Path:
        """The file for Spark's output: beside the server's, unless the environment names one."""
        if path := os.environ.get(SPARK_LOG_VARIABLE):
            return Path(path).absolute()
        beside = self.file_in(database) or database / LOG_FILE
        return beside.with_name(f"{beside.stem}-spark{beside.suffix}")


def read_log_settings(config: Path | None, **options: str | None) -> LogSettings:
    """The section [log] of a file, overridden by options of the command line."""
    settings = LogSettings()
    if config is not None:
        section = table(read_toml(config).get("log", {}), "log")
        settings = log_settings(section, folder_of(config))
    chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "file" in chosen:
        chosen["file"] = _file(chosen["file"], Path.cwd())
    settings = replace(settings, **chosen)
    if settings.file is not None and not settings.to_stderr:
        _require_writable(settings.file)
    return settings


def log_settings(section: Mapping[str, Any], folder: Path) -> LogSettings:
    """The section [log]."""
    values = read_values("log", section, fields(LogSettings), folder)
    if section.get("file") == STDERR:
        values["file"] = Path(STDERR)
    return LogSettings(**values)


def _file(text: str, folder: Path) -> Path:
    return Path(STDERR) if text == STDERR else folder / Path(text).expanduser()


def _require_writable(file: Path) -> None:
    """Refuse a file that cannot be a log, before anything is started."""
    is_there = file.is_file() or not file.exists()
    place = file if file.is_file() else file.parent
    if not (is_there and file.parent.is_dir() and os.access(place, os.W_OK)):
        raise InputError(
            f"the log cannot be written to {file}",
            hint="name a file in a folder that this user may write to; - is standard error",
        )


def _require(key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(
            f"log.{key} cannot be {value!r}",
            hint=nearest(value, known) or f"choose one of {', '.join(known)}",
        )
