"""Join keys as 64-bit hashes: equal keys have equal hashes, under Spark's equality.

For a single column of a fixed width up to eight bytes no two keys have the same hash, so equal
hashes also mean equal keys (`is_exact`). For all else a caller that finds two equal hashes has
to compare the keys (`kernels.equality`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s, UInt64s, as_int64, validity

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_OTHER_ODD: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_NULL: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)


def is_exact(types: Sequence[pa.DataType]) -> bool:
    """Whether equal hashes of keys of these types mean equal keys."""
    return len(types) == 1 and _is_word(types[0])


def key_hashes(columns: Sequence[pa.Array]) -> UInt64s:
    """One hash per row of a key; rows with a NULL in a key column get an arbitrary one."""
    if is_exact([column.type for column in columns]):
        return mix(_words(columns[0]))
    return hash_rows(columns)


def mix(words: Int64s) -> UInt64s:
    """A hash of each word, different for different words; every bit depends on all of theirs."""
    mixed = words.view(np.uint64) >> _HALF
    mixed ^= words.view(np.uint64)
    mixed *= _ODD
    mixed ^= mixed >> _HALF
    return mixed


def hash_rows(columns: Sequence[pa.Array]) -> UInt64s:
    """A 64-bit hash of each row; rows equal in Spark, NULLs included, get equal hashes."""
    if not columns:
        raise ValueError("there is nothing to hash")
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        total *= _OTHER_ODD
        total += _hash_column(column)
    return mix(total.view(np.int64))


def _is_word(kind: pa.DataType) -> bool:
    return bool(
        pat.is_integer(kind)
        or pat.is_floating(kind)
        or pat.is_boolean(kind)
        or pat.is_temporal(kind)
        or (pat.is_decimal(kind) and kind.precision <= 18)
    )


def _words(column: pa.Array) -> Int64s:
    kind = column.type
    if pat.is_floating(kind):
        return _float_words(column)
    if pat.is_decimal(kind):
        return _wide_words(column)[:, 0]
    if pat.is_boolean(kind):
        column = column.cast(pa.int8())
    if kind.bit_width == 64:
        return as_int64(column)
    narrow = column.view(pa.int32()) if pat.is_temporal(kind) else column
    filled = narrow.fill_null(0) if narrow.null_count else narrow
    return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64)


def _float_words(column: pa.Array) -> Int64s:
    values = np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float64)
    values += 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan  # a single NaN
    return values.view(np.int64)


def _wide_words(column: pa.Array) -> Int64s:
    """The two halves of each value of a 16-byte column, low half first."""
    width = column.type.byte_width // 8
    words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, width)
    return words[column.offset : column.offset + len(column)]


def _hash_column(column: pa.Array) -> UInt64s:
    kind = column.type
    if pat.is_struct(kind):
        fields = column.flatten()
        hashes = hash_rows(fields) if fields else np.zeros(len(column), dtype=np.uint64)
    elif pat.is_list(kind) or pat.is_large_list(kind) or pat.is_map(kind):
        hashes = _hash_lists(column)
    elif pat.is_decimal(kind) and not _is_word(kind):
        words = _wide_words(column)
        hashes = mix(words[:, 0] + mix(words[:, 1]).view(np.int64))
    elif _is_word(kind):
        hashes = mix(_words(column))
    elif pat.is_null(kind):
        hashes = np.full(len(column), _NULL, dtype=np.uint64)
    else:
        hashes = _hash_texts(column)
    valid = validity(column)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _hash_lists(column: pa.ListArray) -> UInt64s:
    offsets = np.asarray(column.offsets.to_numpy(), dtype=np.int64)
    lengths = np.diff(offsets)
    values = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    place = np.arange(len(values), dtype=np.int64) - np.repeat(offsets[:-1] - offsets[0], lengths)
    items = mix((_hash_column(values) + mix(place)).view(np.int64))
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(items, dtype=np.uint64)])
    sums = running[offsets[1:] - offsets[0]] - running[offsets[:-1] - offsets[0]]
    return mix((sums + mix(lengths)).view(np.int64))


def _hash_texts(column: pa.Array) -> UInt64s:
    """Hashes of strings or binaries, eight bytes of each at a time."""
    wide = column.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], dtype=np.int64)
    offsets = offsets[wide.offset : wide.offset + len(wide) + 1]
    lengths = np.diff(offsets)
    words = _words_at_every_byte(wide.buffers()[2])
    hashes = mix(lengths)
    rows, done = np.flatnonzero(lengths), 0
    while len(rows):
        taken = words[offsets[rows] + done]
        left = lengths[rows] - done
        short = left < 8
        taken[short] &= (np.uint64(1) << (left[short] * 8).astype(np.uint64)) - np.uint64(1)
        hashes[rows] = mix((hashes[rows] * _OTHER_ODD + taken).view(np.int64))
        rows, done = rows[left > 8], done + 8
    return hashes


def _words_at_every_byte(data: pa.Buffer | None) -> UInt64s:
    size = 0 if data is None else data.size
    padded = np.zeros(size + 8, dtype=np.uint8)
    if data is not None:
        padded[:size] = np.frombuffer(data, dtype=np.uint8)
    return np.ndarray(shape=(size + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
