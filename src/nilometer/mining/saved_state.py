"""The state of a miner as bytes: numpy arrays after a JSON header. No pickle."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nilometer.mining.table_function import Saved


def encode(saved: Saved) -> bytes:
    """The bytes of a state."""
    arrays: list[bytes] = []
    header: dict[str, Any] = {}
    for name, value in saved.items():
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value)
            header[name] = {"array": array.dtype.str, "shape": array.shape}
            arrays.append(array.tobytes())
        else:
            header[name] = {"value": value}
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([len(text).to_bytes(4, "little"), text, *arrays])


def decode(stored: bytes) -> Saved:
    """Restore the state; its arrays are writable."""
    begin = 4 + int.from_bytes(stored[:4], "little")
    saved: Saved = {}
    for name, one in json.loads(stored[4:begin]).items():
        if "array" not in one:
            saved[name] = one["value"]
            continue
        kind, shape = np.dtype(one["array"]), tuple(one["shape"])
        size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        saved[name] = np.frombuffer(stored[begin : begin + size], kind).reshape(shape).copy()
        begin += size
    return saved
