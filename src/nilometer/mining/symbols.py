"""Values as symbols: numbers by their level, all others by value."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arrays import Int64s
from nilometer.mining.table_function import MiningError, Numbers, Saved
from nilometer.mining.vectors import as_numbers

NOTHING: Final = -1
"""The code of an unknown sample; it matches nothing."""
OTHER: Final = -2
"""The code of a symbol beyond the limit of distinct ones; it matches nothing, not even itself."""


class Levels:
    """Numbers as levels between breaks; a number equal to a break belongs to the level below.

    >>> levels = Levels([0, 5])
    >>> [levels.names[code] for code in levels.encode(pa.array([-3.0, 0.0, 0.1, 5.0, 9.0]))]
    ['<=0', '<=0', '0..5', '0..5', '>5']
    """

    def __init__(self, breaks: Sequence[float] | Numbers) -> None:
        self.breaks: Numbers = np.asarray(breaks, np.float64) + 0.0
        if not (np.isfinite(self.breaks).all() and (np.diff(self.breaks) > 0).all()):
            raise MiningError("breaks must be ascending numbers", argument="breaks")

    @property
    def names(self) -> list[str]:
        """The names of the levels, lowest first."""
        texts = [f"{one:.15g}" for one in self.breaks]
        if not texts:
            return ["any"]
        between = [f"{low}..{high}" for low, high in pairwise(texts)]
        return [f"<={texts[0]}", *between, f">{texts[-1]}"]

    def encode(self, values: pa.Array) -> Int64s:
        """The codes of numbers; NULL and NaN are unknown."""
        numbers = as_numbers(values)
        codes = np.searchsorted(self.breaks, numbers, side="left")
        codes[np.isnan(numbers)] = NOTHING
        return codes.astype(np.int64)

    def save(self) -> Saved:
        """What `load_alphabet` needs."""
        return {"breaks": self.breaks.tolist()}


class FirstSeen:
    """Strings as symbols in the order they were first seen, up to a limit of distinct ones.

    >>> symbols = FirstSeen(2)
    >>> symbols.encode(pa.array(["b", "a", None, "b", "c"])).tolist(), symbols.names
    ([0, 1, -1, 0, -2], ['b', 'a'])
    """

    def __init__(self, limit: int = 32, names: Sequence[str] = ()) -> None:
        self.limit = limit
        self.names = list(names)
        self.full = False
        """Whether the limit has been exceeded."""

    def encode(self, values: pa.Array) -> Int64s:
        """The codes of strings; NULL is unknown."""
        encoded = pc.dictionary_encode(values)
        coded = [*(self._code(text) for text in encoded.dictionary.to_pylist()), NOTHING]
        places = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        codes: Int64s = np.array(coded, np.int64)[places]
        return codes

    def save(self) -> Saved:
        """What `load_alphabet` needs."""
        return {"most": self.limit, "names": self.names, "full": self.full}

    def _code(self, text: str) -> int:
        try:
            return self.names.index(text)
        except ValueError:
            if len(self.names) >= self.limit:
                self.full = True
                return OTHER
            self.names.append(text)
            return len(self.names) - 1


Alphabet: TypeAlias = Levels | FirstSeen


def load_alphabet(saved: Saved) -> Alphabet:
    """Restore an alphabet."""
    if "breaks" in saved:
        return Levels(saved["breaks"])
    restored = FirstSeen(saved["most"], saved["names"])
    restored.full = saved["full"]
    return restored


def quantile_breaks(numbers: Numbers, levels: int) -> Numbers:
    """Breaks between levels with equally many of the numbers; fewer levels if there are many ties.

    >>> quantile_breaks(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), 4).tolist()
    [0.0, 1.0, 3.0]
    """
    known = numbers[np.isfinite(numbers)]
    if not len(known) or levels < 2:
        return np.empty(0)
    parts = np.arange(1, levels) / levels
    # A measured number, not an interpolated one: it does not depend on rounding.
    return np.unique(np.quantile(known, parts, method="inverted_cdf") + 0.0)


def is_levelled(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers."""
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


def as_texts(values: pa.Array) -> pa.Array:
    """Values as strings; NaN is unknown."""
    if pat.is_floating(values.type):
        numbers = as_numbers(values) + 0.0
        values = pa.array(numbers, mask=np.isnan(numbers))
    return values.cast(pa.string())


def check_symbols(kind: pa.DataType) -> None:
    """Check that values of a type can be symbols."""
    usable = is_levelled(kind) or pat.is_string(kind) or pat.is_large_string(kind)
    if not (usable or pat.is_boolean(kind) or pat.is_temporal(kind)):
        raise MiningError(
            "symbols are texts, numbers, times or booleans", detail=f"got {kind}", argument="value"
        )


def encode(symbols: Alphabet, sequence: Any) -> Int64s:
    """The codes of values that a caller passes as a sequence or an array."""
    values = sequence if isinstance(sequence, pa.Array) else pa.array(sequence, from_pandas=True)
    return symbols.encode(as_texts(values) if isinstance(symbols, FirstSeen) else values)


def codes_in(symbols: Alphabet, other: Alphabet) -> Int64s:
    """The codes of another alphabet's symbols in this one, which learns them; NOTHING is last.

    The last but one is OTHER, so that negative codes map to themselves.
    """
    if isinstance(symbols, FirstSeen) and isinstance(other, FirstSeen):
        if other.full:
            raise MiningError(
                "a part with more symbols than it distinguishes cannot be merged",
                detail=f"it distinguishes {other.limit}",
                hint="let it distinguish more: FirstSeen(…)",
            )
        own = symbols.encode(pa.array(other.names, pa.string()))
    elif symbols.names == other.names:
        own = np.arange(len(other.names))
    else:
        raise MiningError("parts with other symbols cannot be merged")
    return np.concatenate([own, [OTHER, NOTHING]])
