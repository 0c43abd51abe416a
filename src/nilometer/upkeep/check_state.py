"""Whether the state of queries is whole: the shared engine's files, and Spark's checkpoints."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

from nilometer.engine.bucket_files import BucketFolder, results_after
from nilometer.engine.folder import LocalFolder
from nilometer.engine.plan_set import BUCKETS, PLANS_FILE, read_plan_set
from nilometer.engine.published import read_published_file
from nilometer.engine.stuck_results import STUCK, read_stuck
from nilometer.log.recovery import LogState
from nilometer.spark.moved_state import MOVED, damaged_files, is_settled
from nilometer.upkeep.problem import Problems
from nilometer.upkeep.query_state import CheckpointImage, checkpoint_image, kept_queries

_AGAIN: Final = (
    "restore the database from a backup; or drop the query and create it again, "
    "which begins with the rows that its streams still have"
)
_CRC_HEAD: Final = struct.Struct(">4sI")
_CRC_MAGIC: Final = b"crc\x00"


def check_engine(folder: Path, logs: Mapping[str, LogState | None], problems: Problems) -> None:
    """What is wrong with the files of the shared engine; `logs` are results by queries' ids."""
    if not folder.is_dir():
        if logs:
            problems.add(folder, "it is missing, and with it the state of queries")
        return
    with problems.noting(folder / PLANS_FILE):
        read_plan_set((folder / PLANS_FILE).read_bytes())
    results: dict[str, int] = {}
    for place in sorted((folder / BUCKETS).glob("[0-9]*")):
        with problems.noting(place):
            results |= _check_bucket(folder, place, problems)
    for query, state in logs.items():
        last = None if state is None else state.batches.get(query)
        if last is not None and last > results.get(query, 0):
            problems.add(
                folder,
                f"the state of the query {query} is older than its results: it has made "
                f"{results.get(query, 0)}, and the log has {last}",
                _AGAIN,
            )
    for file in sorted((folder / STUCK).glob("*/[0-9]*")):
        with problems.noting(file):
            read_stuck(file.read_bytes())


def _check_bucket(folder: Path, place: Path, problems: Problems) -> dict[str, int]:
    """How many results each query of a bucket has had."""
    files = BucketFolder(LocalFolder(place))
    try:
        published = -1
        with problems.noting(folder):
            published = read_published_file(folder, int(place.name))
        numbers = files.numbers()
        is_known = bool(numbers) and published >= 0
        if is_known and not numbers[0] <= published + 1 <= numbers[-1] + 1:
            problems.add(
                place,
                f"files are missing: {published} is the last whose results are in their logs, "
                f"and there are {numbers[0]} to {numbers[-1]}",
            )
        for batch in results_after(files, -1):
            own = f"{batch.number:012d}.batch"
            for entry in batch.entries:
                parts = (entry.state, entry.about, *entry.chunks.values(), *entry.frames)
                for part in parts:
                    if part is not None and part.file == own:
                        files.read(part)
        results = {}
        for query, stored in kept_queries(files).items():
            for extent in stored.extents:
                files.read(extent)
            if stored.state is not None:
                results[query] = int(json.loads(files.read(stored.state))["results"])
        return results
    finally:
        files.close()


def check_checkpoint(folder: Path, results: LogState | None, problems: Problems) -> None:
    """What is wrong with a Spark checkpoint, given the log of the query's results."""
    if not folder.is_dir():
        if results is not None and results.batches:
            problems.add(folder, "the checkpoint of a query that has results is missing", _AGAIN)
        return
    image = checkpoint_image(folder)
    with problems.noting(folder, _AGAIN):
        _check_progress(image, results, problems)
        for copy in folder.glob(f"{MOVED}/*"):
            for file in damaged_files(copy) if is_settled(folder, copy.name) else ():
                problems.add(file, "it is damaged or missing", _AGAIN)
        for file in _files(folder):
            _check_file(file, problems)
        for partition in sorted(folder.glob("state/*/*")):
            if partition.name.isdecimal() and image.committed >= 0:
                _check_versions(partition, image.committed + 1, problems)


def _check_progress(image: CheckpointImage, results: LogState | None, problems: Problems) -> None:
    folder = image.folder
    if image.query is None and image.follows is not None:
        return  # it has done nothing since its number of buckets was changed
    if image.query is None:
        problems.add(folder / "metadata", "it is missing or damaged", _AGAIN)
        return
    last = -1 if results is None else results.batches.get(image.query, -1)
    if image.committed > last:
        problems.add(
            folder,
            f"{image.committed} micro-batches are finished, but the results end with {last}",
            _AGAIN,
        )
    elif last > image.committed + 1:
        problems.add(
            folder,
            f"the results hold micro-batch {last}, but only {image.committed} is finished",
            _AGAIN,
        )
    if image.committed >= 0 and not (folder / "offsets" / str(image.committed)).exists():
        problems.add(folder / "offsets" / str(image.committed), "it is missing", _AGAIN)


def _check_file(file: Path, problems: Problems) -> None:
    """Check a file against its checksums, if Spark stored any, or at least its form."""
    with problems.noting(file, _AGAIN):
        if (why := _differs(file)) is not None:
            problems.add(file, why, _AGAIN)
        elif file.suffix == ".zip":
            try:
                with ZipFile(file) as archive:
                    bad = archive.testzip()
            except BadZipFile as error:
                bad = str(error)
            if bad is not None:
                problems.add(file, f"it is damaged ({bad})", _AGAIN)
        elif file.parent.name in ("offsets", "commits", "v2") or file.name == "metadata":
            lines = file.read_text().splitlines()
            for line in lines if file.name == "metadata" else lines[1:]:
                _ = line == "-" or json.loads(line)


def _differs(file: Path) -> str | None:
    """What Hadoop's checksums say of a file: there is one for each block of bytes."""
    try:
        content = file.with_name(f".{file.name}.crc").read_bytes()
    except FileNotFoundError:
        return None
    if len(content) < _CRC_HEAD.size:
        return "its checksums are cut off"
    magic, each = _CRC_HEAD.unpack_from(content)
    if magic != _CRC_MAGIC or each < 1:
        return "its checksums are damaged"
    checksums, data = content[_CRC_HEAD.size :], file.read_bytes()
    sums = b"".join(
        zlib.crc32(data[at : at + each]).to_bytes(4, "big") for at in range(0, len(data), each)
    )
    return None if sums == checksums else "its checksum is wrong"


def _check_versions(partition: Path, version: int, problems: Problems) -> None:
    """Whether the state of a partition can be put together."""
    names = {one.name for one in partition.iterdir()}
    if not any(name.endswith((".zip", ".changelog")) for name in names):
        return
    snapshots = {int(n[:-4]) for n in names if n.endswith(".zip") and n[:-4].isdecimal()}
    base = max((one for one in snapshots if one <= version), default=0)
    missing = [
        number
        for number in range(base + 1, version + 1)
        if f"{number}.changelog" not in names
        and not any(name.startswith(f"{number}_") for name in names)
    ]
    has_begun = base > 0 or "1.changelog" in names or any(n.startswith("1_") for n in names)
    if missing or not has_begun:
        problems.add(partition, f"changes of state are missing: {missing or 'all'}", _AGAIN)


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.startswith(".") and not file.name.endswith(".tmp"):
            yield file
