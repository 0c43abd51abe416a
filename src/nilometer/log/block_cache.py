"""A cache of recently decoded rows, as queries over the past often repeat."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

MOST_BYTES: Final = 256 << 20


class Sized(Protocol):
    """What is cached: rows, or an object that holds rows."""

    @property
    def nbytes(self) -> int: ...


_Value = TypeVar("_Value", bound=Sized)


class BlockCache(Generic[_Value]):
    """The most recently used blocks, up to a number of bytes; thread-safe."""

    def __init__(self, max_bytes: int = MOST_BYTES) -> None:
        self._max_bytes = max_bytes
        self._blocks: OrderedDict[Hashable, _Value] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, decode: Callable[[], _Value]) -> _Value:
        """A block, decoded if it is missing. What has a key never changes."""
        block = self.find(key)
        if block is None:
            block = decode()
            self.put(key, block)
        return block

    def find(self, key: Hashable) -> _Value | None:
        """What is cached under a key, if it still is."""
        with self._lock:
            if (block := self._blocks.get(key)) is not None:
                self._blocks.move_to_end(key)
            return block

    def put(self, key: Hashable, block: _Value) -> None:
        """Cache a block, replacing what has its key."""
        with self._lock:
            before = self._blocks.pop(key, None)
            self._blocks[key] = block
            self._size += block.nbytes - (0 if before is None else before.nbytes)
            while self._size > self._max_bytes:
                _, oldest = self._blocks.popitem(last=False)
                self._size -= oldest.nbytes
