"""Which files hold the segments of a log, and which segment is in which file.

    000000000012.seg                     one segment, as it was written
    000000000012-000000000019.1.pack     segments 12 … 19 packed into one file; the last number
                                         grows when files are packed again
    000000000019.base                    a base: the answer that all changes up to the end of
                                         segment 19 add up to, in their place

In an object store, packs and bases also carry the term of their writer. None of these files ever
changes. What is in a newer file is ignored in older ones: whoever packs segments deletes the
files that they came from, and may be stopped before that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from nilometer.log.segment_format import segment_number
from nilometer.log.storage import Storage

BASE: Final = ".base"
PACK: Final = ".pack"
_TERM: Final = r"\.(?P<term>\d{8}-[0-9a-f]{16})"
_PACK: Final = re.compile(rf"(\d{{12}})-(\d{{12}})\.(\d{{1,4}})(?:{_TERM})?\.pack")
_BASE: Final = re.compile(rf"(\d{{12}})(?:{_TERM})?\.base")


@dataclass(frozen=True)
class SegmentFile:
    """A file and the segments in it that count: first … last, inclusive."""

    name: str
    size: int
    first: int
    last: int
    generation: int = 0
    """How often its segments were packed."""
    term: str = ""

    @property
    def is_packed(self) -> bool:
        return not self.name.endswith(".seg")

    @property
    def is_base(self) -> bool:
        return self.name.endswith(BASE)

    def narrowed(self, first: int, last: int) -> SegmentFile:
        return SegmentFile(self.name, self.size, first, last, self.generation, self.term)


def pack_name(first: int, last: int, generation: int, term: str) -> str:
    return f"{first:012d}-{last:012d}.{generation}{_dotted(term)}{PACK}"


def base_name(number: int, term: str) -> str:
    return f"{number:012d}{_dotted(term)}{BASE}"


def is_packed_name(name: str) -> bool:
    """Whether a file of this name holds packed segments or a base."""
    return parse_name(name) is not None and segment_number(name) is None


def parse_name(name: str, size: int = 0) -> SegmentFile | None:
    """The information in a file's name; None if the file holds no segments."""
    number = segment_number(name)
    if number is not None:
        return SegmentFile(name, size, number, number)
    if match := _PACK.fullmatch(name):
        first, last, generation = (int(match[n]) for n in (1, 2, 3))
        return SegmentFile(name, size, first, last, generation, match["term"] or "")
    if match := _BASE.fullmatch(name):
        number = int(match[1])
        return SegmentFile(name, size, number, number, 0, match["term"] or "")
    return None


def segment_files(storage: Storage) -> list[SegmentFile]:
    """The files that make up a log, the oldest segments first, each segment in only one of them."""
    files = _counting(_parsed(storage))
    if storage.publishes:
        return files
    # Numbers are consecutive where every append is an object: what lies before a gap was
    # deleted, and was written again by a writer that did not know.
    gaps = [n for n, (a, b) in enumerate(pairwise(files), 1) if b.first != a.last + 1]
    return files[gaps[-1] :] if gaps else files


def needless_files(storage: Storage) -> list[str]:
    """The files of which no segment counts any more."""
    files = _parsed(storage)
    needed = {one.name for one in _counting(files)}
    return [one.name for one in files if one.name not in needed]


def _parsed(storage: Storage) -> list[SegmentFile]:
    return [one for one in (parse_name(*file) for file in storage.files()) if one is not None]


def _counting(parsed: Iterable[SegmentFile]) -> list[SegmentFile]:
    """Each segment in the newest file that has it; nothing before the newest base."""
    files = list(parsed)
    base = max((one for one in files if one.is_base), key=_age, default=None)
    begin = -1 if base is None else base.first
    packs = sorted(
        (one for one in files if one.is_packed and not one.is_base),
        key=lambda one: (one.term, one.generation),
    )
    loose = [one for one in files if not one.is_packed]
    if not packs and base is None:
        return sorted(loose, key=lambda one: one.first)
    holder = {one.first: one for one in loose if one.first > begin}
    for pack in packs:
        for number in range(max(pack.first, begin + 1), pack.last + 1):
            holder[number] = pack
    return [*([] if base is None else [base]), *_runs(holder)]


def _age(base: SegmentFile) -> tuple[int, str]:
    return base.first, base.term


def _runs(holder: dict[int, SegmentFile]) -> list[SegmentFile]:
    """Segments by file, one entry for each run of consecutive ones."""
    files: list[SegmentFile] = []
    for number in sorted(holder):
        file = holder[number]
        if files and files[-1].name == file.name and files[-1].last == number - 1:
            files[-1] = file.narrowed(files[-1].first, number)
        else:
            files.append(file.narrowed(number, number))
    return files


def _dotted(term: str) -> str:
    return f".{term}" if term else ""
