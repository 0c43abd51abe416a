"""The Spark that runs a server's queries; read before anything slow is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nilometer.errors import InputError
from nilometer.server.config_values import read_toml, table

_MASTER: Final = re.compile(r"local(\[.+\])?|spark://\S+|k8s://\S+|yarn")
_OURS: Final = {
    "spark.sql.session.timeZone": "times are in UTC everywhere",
    "spark.sql.streaming.stateStore.providerClass": "operators need this state store",
    "spark.sql.runSQLOnFiles": "a statement never names a file",
    "spark.sql.variable.substitute": "variables in statements are not substituted",
    "spark.sql.streaming.checkpointFileManagerClass": "checkpoints are forced to the disk",
    "spark.hadoop.fs.file.impl": "files of checkpoints have to be replaced",
    "spark.master": "write master = … instead",
}
"""Settings that are not allowed, and why."""
_MEANINGS: Final = (
    *("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.", "spark.sql.caseSensitive"),
    *("spark.sql.mapKeyDedupPolicy", "spark.sql.decimalOperations.", "spark.sql.defaultCollation"),
    "spark.sql.session.collation.",
)
"""How the names of settings begin that would give statements another meaning."""


@dataclass(frozen=True)
class SparkSettings:
    """The section [spark] of a configuration."""

    master: str | None = None
    """The master of the cluster whose executors run queries; None: this machine."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark by their full names."""


def read_spark_settings(config: Path | None, master: str | None) -> SparkSettings:
    """The settings of a file, overridden by the command line."""
    section = {} if config is None else table(read_toml(config).get("spark", {}), "spark")
    settings = spark_settings(section)
    return settings if master is None else SparkSettings(_checked(master), settings.config)


def spark_settings(section: Mapping[str, Any], _: Path | None = None) -> SparkSettings:
    """Parse the section."""
    master, config = None, {}
    for key, value in section.items():
        if key == "master":
            master = _checked(str(value))
            continue
        if not key.startswith("spark."):
            raise InputError(
                f"the configuration has no spark.{key}",
                hint='write master = "spark://…", or settings of Spark by their full names, '
                'such as "spark.executor.memory" = "4g"',
            )
        if key in _OURS:
            raise InputError(f"{key} cannot be set", detail=_OURS[key])
        if key.startswith(_MEANINGS):
            raise InputError(f"{key} cannot be set", detail="statements would mean something else")
        if not isinstance(value, str | int | float):
            raise InputError(f"{key} must be a text or a number", detail=f"got {value!r}")
        config[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return SparkSettings(master, config)


def _checked(master: str) -> str:
    if not _MASTER.fullmatch(master):
        raise InputError(
            "cannot use this master of Spark",
            detail=f"got {master}",
            hint="write spark://host:7077, k8s://https://host:6443, yarn, or local[4]; a server "
            "cannot use Spark Connect, as the driver must run inside it",
        )
    return master
