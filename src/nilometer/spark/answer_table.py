"""`nm.keep_answer`: keeps the current answer of a changelog as a table, readable at any time.

The table is a folder: every micro-batch that changes the answer writes it anew into a folder of
its own, then a small file that names this folder is replaced by renaming. So a reader sees the
answer before a batch or after it, and a batch that is repeated changes nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.errors import CheckpointError, InputError
from nilometer.spark.snapshot import (
    COPIES,
    count_copies,
    instant_of,
    number_columns,
    repeat_rows,
    require_changelog,
)

KEPT_VERSIONS: Final = 3
KEPT_SECONDS: Final = 30.0
"""How long a replaced version is kept, unless it is among the last few, which are kept longer."""

_POINTER: Final = "current.json"
_VERSION: Final = "version-"


class KeptAnswer(NamedTuple):
    """The rows of an answer, and the time for which it holds (None before any change)."""

    rows: DataFrame
    time: datetime | None


@dataclass(frozen=True, slots=True)
class _Current:
    """The content of the file that names the current version."""

    query: str
    """The streaming query that keeps the table."""
    batch: int
    version: str
    names: list[str]
    time: int | None
    """The time of the last change (microseconds); None before the first."""
    replaced: list[tuple[str, float]]
    """Replaced versions that still exist, oldest first, and when they were replaced (seconds)."""


def keep_answer(
    changelog: DataFrame,
    path: str | Path,
    *,
    checkpoint: str | Path | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Keep the current answer of a streaming changelog in a folder; read it by `nm.read_answer`.

    The driver and the executors must share the folder. It also holds the checkpoint unless
    another location is given; `trigger` is what `DataStreamWriter.trigger` takes.

    >>> nm.keep_answer(changelog, "sales", trigger={"processingTime": "1 second"})  # doctest: +SKIP
    """
    require_changelog(changelog)
    if not changelog.isStreaming:
        raise InputError(
            "the answer of a static changelog does not change",
            hint="nm.snapshot(changelog) gives it",
        )
    folder = _folder(path)
    place = f"file://{folder}/checkpoint" if checkpoint is None else str(checkpoint)
    work = _KeepAnswer(str(folder), place, changelog.columns[:-2])
    writer = changelog.writeStream.foreachBatch(work).option("checkpointLocation", place)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


def read_answer(spark: SparkSession, path: str | Path) -> KeptAnswer:
    """The current answer that `nm.keep_answer` keeps in a folder, and the time for which it holds.

    The rows are those of this moment: read them within half a minute if the query keeps running.

    >>> rows, time = nm.read_answer(spark, "sales")  # doctest: +SKIP
    """
    folder = _folder(path)
    current = _read_pointer(spark, folder)
    if current is None:
        raise InputError(
            f"there is no answer in {folder} yet",
            hint="nm.keep_answer(changelog, path) creates one with its first micro-batch",
        )
    rows = repeat_rows(_read_version(spark, folder, current.version), current.names)
    return KeptAnswer(rows, None if current.time is None else instant_of(current.time))


class _KeepAnswer:
    """Handles each micro-batch, on the driver or the Spark Connect server."""

    def __init__(self, folder: str, checkpoint: str, names: list[str]) -> None:
        self._folder = folder
        self._checkpoint = checkpoint
        self._names = names
        self._query: str | None = None

    def __call__(self, changes: DataFrame, batch: int) -> None:
        spark, folder = changes.sparkSession, Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self._query is None:
            self._query = query_id(spark, self._checkpoint)
        current = _load_pointer(folder)
        if not _is_next(current, self._query, batch, folder):
            return
        _remove_unnamed(folder, current)
        # Several jobs read it, and computing it twice would run the operators' state twice.
        changes = number_columns(changes).persist()
        try:
            _write_pointer(folder, self._advance(spark, folder, changes, current, batch))
        finally:
            changes.unpersist()

    def _advance(
        self,
        spark: SparkSession,
        folder: Path,
        changes: DataFrame,
        current: _Current | None,
        batch: int,
    ) -> _Current:
        """Write the next version, if it differs, and return the new pointer."""
        assert self._query is not None
        [(latest,)] = changes.selectExpr("unix_micros(max(_time))").collect()
        if current is not None and latest is None:
            return replace(current, batch=batch)
        rows = changes.selectExpr("* EXCEPT (_time, _diff)", f"_diff AS {COPIES}")
        if current is not None:
            rows = rows.unionAll(_read_version(spark, folder, current.version))
        version = f"{_VERSION}{batch:012d}-{uuid4().hex}"
        count_copies(rows).write.parquet(f"file://{folder / version}")
        times = [t for t in (latest, current.time if current else None) if t is not None]
        return _Current(
            self._query,
            batch,
            version,
            self._names,
            max(times, default=None),
            [] if current is None else _forget_old(folder, current),
        )


def _is_next(current: _Current | None, query: str, batch: int, folder: Path) -> bool:
    """Whether a batch follows the one that the table holds; False if it is a repeat of that one."""
    if current is None and batch == 0:
        return True
    if current is not None and current.query == query:
        if batch == current.batch:
            return False
        if batch == current.batch + 1:
            return True
    held = "none" if current is None else f"one up to micro-batch {current.batch}"
    other = "" if current is None or current.query == query else " of another query"
    raise CheckpointError(
        f"the answer in {folder} does not belong to this checkpoint",
        detail=f"the query continues with micro-batch {batch}, but the table holds {held}{other}",
        hint="remove both the table and the checkpoint, or keep the answer in another folder",
    )


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query, from its checkpoint."""
    [(text,)] = spark.read.text(_escape(f"{checkpoint}/metadata")).collect()
    return str(json.loads(text)["id"])


def _read_version(spark: SparkSession, folder: Path, version: str) -> DataFrame:
    return spark.read.parquet(_escape(f"file://{folder / version}"))


def _forget_old(folder: Path, current: _Current) -> list[tuple[str, float]]:
    """Delete versions that no one can still be reading; returns those that stay."""
    now = time.time()
    replaced = [*current.replaced, (current.version, now)]
    staying = []
    for number, (version, when) in enumerate(replaced):
        if number < len(replaced) - KEPT_VERSIONS and now - when > KEPT_SECONDS:
            shutil.rmtree(folder / version, ignore_errors=True)
        else:
            staying.append((version, when))
    return staying


def _remove_unnamed(folder: Path, current: _Current | None) -> None:
    """Delete what a killed batch has left behind."""
    named = [current.version, *(version for version, _ in current.replaced)] if current else []
    for version_folder in folder.glob(f"{_VERSION}*"):
        if version_folder.name not in named:
            shutil.rmtree(version_folder, ignore_errors=True)


def _write_pointer(folder: Path, current: _Current) -> None:
    hidden = folder / f".{_POINTER}"
    with hidden.open("w") as file:
        json.dump(asdict(current), file)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(folder / _POINTER)


def _load_pointer(folder: Path) -> _Current | None:
    file = folder / _POINTER
    return _parse(file.read_text()) if file.exists() else None


def _read_pointer(spark: SparkSession, folder: Path) -> _Current | None:
    """Read the pointer where Spark runs, which may be another machine."""
    try:
        [(text,)] = (
            spark.read.option("wholetext", True)
            .text(_escape(f"file://{folder / _POINTER}"))
            .collect()
        )
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    return _parse(text)


def _parse(text: str) -> _Current:
    fields = json.loads(text)
    fields["replaced"] = [(version, when) for version, when in fields["replaced"]]
    return _Current(**fields)


def _escape(path: str) -> str:
    """Escape a path so that Spark does not read it as a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _folder(path: str | Path) -> Path:
    text = str(path)
    if "://" in text and not text.startswith("file://"):
        raise InputError(
            "an answer is kept in a folder of the file system",
            detail=f"got {text!r}",
            hint="give the path of a folder that driver and executors share",
        )
    return Path(text.removeprefix("file://")).absolute()
