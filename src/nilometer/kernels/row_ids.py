"""Row identities: 128 bits, two independent hashes of the row's values.

Rows that are equal in Spark, NULLs included, agree in both; that two others agree in both is not
to be expected in the life of a query. A single column of at most eight bytes is known
exactly. The first hash is that of `kernels.key_hashes`. The second takes values apart in
the same way but mixes other constants in another order, so that values which agree in one by
chance do not in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Bools, Int64s, UInt64s, validity
from nilometer.kernels.function_types import is_text
from nilometer.kernels.key_hashes import hash_rows, is_exact, mix

_ODD: Final = np.uint64(0xA0761D6478BD642F)
_OTHER_ODD: Final = np.uint64(0xE7037ED1A0B428DB)
_NULL: Final = np.uint64(0x8EBC6AF09C88C6E3)
_SHIFT: Final = np.uint64(29)
_SAMPLE: Final = 1024


@dataclass(frozen=True, slots=True)
class RowIds:
    """The identities of rows: two words each."""

    h1: Int64s
    h2: Int64s

    def __len__(self) -> int:
        return len(self.h1)

    def only(self, places: Int64s | Bools) -> RowIds:
        return RowIds(self.h1[places], self.h2[places])


def identify_rows(columns: Sequence[pa.Array], size: int) -> RowIds:
    """The identities of rows; without columns all rows are equal."""
    nothing = np.zeros(size, np.int64)
    if not columns:
        return RowIds(nothing, nothing)
    if is_exact([column.type for column in columns]):
        valid = validity(columns[0])
        unlike_values = nothing if valid is None else (~valid).astype(np.int64)
        return RowIds(hash_rows(columns).view(np.int64), unlike_values)
    pairs = [_hash_twice(column) for column in columns]
    first, second = pairs[0]
    for one, other in pairs[1:]:
        first = mix((first * _OTHER_ODD + one).view(np.int64))
        second = _stir(second) ^ other
    return RowIds(first.view(np.int64), second.view(np.int64))


def join_ids(parts: Sequence[RowIds]) -> RowIds:
    """The identities of rows, concatenated."""
    if len(parts) == 1:
        return parts[0]
    return RowIds(
        np.concatenate([part.h1 for part in parts]), np.concatenate([part.h2 for part in parts])
    )


def _hash_twice(column: pa.Array) -> tuple[UInt64s, UInt64s]:
    """Both hashes of a column; of one with many repeated texts, those of its distinct values."""
    if _has_bytes(column.type) and _repeats(column):
        coded = column.dictionary_encode(null_encoding="encode")
        places = np.asarray(coded.indices)
        values = coded.dictionary
        return hash_rows([values])[places], _second(values)[places]
    return hash_rows([column]), _second(column)


def _has_bytes(kind: pa.DataType) -> bool:
    return is_text(kind) or bool(pat.is_binary(kind) or pat.is_large_binary(kind))


def _repeats(column: pa.Array) -> bool:
    step = len(column) // _SAMPLE
    if step < 2:
        return False
    sample = column.take(pa.array(np.arange(_SAMPLE) * step))
    return bool(4 * len(sample.unique()) < 3 * _SAMPLE)


def _second(column: pa.Array) -> UInt64s:
    kind = column.type
    if pat.is_struct(kind):
        hashes = np.zeros(len(column), np.uint64)
        for field in column.flatten():
            hashes = _stir(hashes ^ _second(field))
    elif pat.is_list(kind) or pat.is_large_list(kind) or pat.is_map(kind):
        hashes = _second_of_lists(column)
    elif is_exact([kind]):
        hashes = hash_rows([column]) * _OTHER_ODD
    elif pat.is_null(kind):
        hashes = np.full(len(column), _NULL)
    else:
        hashes = _second_of_texts(column)
    valid = validity(column)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _stir(words: UInt64s) -> UInt64s:
    stirred = words * _ODD
    stirred ^= stirred >> _SHIFT
    stirred *= _OTHER_ODD
    stirred ^= stirred >> _SHIFT
    return stirred


def _second_of_lists(column: pa.ListArray) -> UInt64s:
    offsets = np.asarray(column.offsets.to_numpy(), dtype=np.int64)
    values = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    return _sum_up(_second(values), offsets - offsets[0], np.diff(offsets))


def _second_of_texts(column: pa.Array) -> UInt64s:
    """Of strings and binaries as lists of words of eight bytes."""
    if pat.is_decimal(column.type):
        column = column.view(pa.binary(column.type.byte_width))
    wide = column.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
    lengths = np.diff(offsets)
    words = (lengths + 7) >> 3
    ends = np.cumsum(words)
    owners = np.repeat(np.arange(len(wide)), words)
    places = np.arange(len(owners)) - np.repeat(ends - words, words)
    left = np.minimum(lengths[owners] - 8 * places, 8)
    taken = _words_at(wide.buffers()[2], offsets[owners] + 8 * places)
    taken &= ~np.uint64(0) >> (64 - 8 * left).astype(np.uint64)
    return _sum_up(taken, np.concatenate([[0], ends]), lengths)


def _words_at(data: pa.Buffer | None, places: Int64s) -> UInt64s:
    size = 0 if data is None else data.size
    padded = np.zeros(size + 8, np.uint8)
    if data is not None:
        padded[:size] = np.frombuffer(data, np.uint8)
    every_byte: UInt64s = np.ndarray((size + 1,), "<u8", padded.data, strides=(1,))
    return every_byte[places]


def _sum_up(items: UInt64s, offsets: Int64s, lengths: Int64s) -> UInt64s:
    """A hash of each list of items, given where the lists begin and end, and their lengths."""
    sizes = np.diff(offsets)
    places = np.arange(len(items)) - np.repeat(offsets[:-1], sizes)
    salted = _stir(items ^ _stir((places + 1).view(np.uint64)))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(salted, dtype=np.uint64)])
    return _stir((running[offsets[1:]] - running[offsets[:-1]]) ^ lengths.view(np.uint64))
