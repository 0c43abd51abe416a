"""Hashes, and strings that encode bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import Any, Final
from urllib.parse import quote_plus, unquote_plus

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.function_types import is_text
from nilometer.kernels.functions.function import (
    Function,
    bytes_of,
    each,
    int32,
    int64,
    text,
    tried,
)

_STRING: Final = pa.string()
_SHA2: Final = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


def _sha1(value: bytes) -> str:
    return hashlib.sha1(value, usedforsecurity=False).hexdigest()


def _sha2(value: bytes, bits: int) -> str | None:
    name = _SHA2.get(bits)
    return None if name is None else hashlib.new(name, value).hexdigest()


def _hex(value: int | bytes) -> str:
    if isinstance(value, bytes):
        return value.hex().upper()
    return f"{value & (2**64 - 1):X}"


def _hexed(kind: pa.DataType) -> pa.DataType | None:
    return (
        int64(kind)
        if not is_text(kind) and not pat.is_null(kind) and not pat.is_binary(kind)
        else bytes_of(kind)
    )


def _unhex(value: str) -> bytes | None:
    """The bytes of hexadecimal digits; NULL if there are other characters."""
    try:
        return binascii.unhexlify(f"0{value}" if len(value) % 2 else value)
    except (binascii.Error, ValueError):
        return None


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bin(value: int) -> str:
    return f"{value & (2**64 - 1):b}"


def _url_encode(value: str) -> str:
    return quote_plus(value, safe="*-._").replace("~", "%7E")


def _url_decode(value: str) -> str:
    for place, letter in enumerate(value):
        digits = value[place + 1 : place + 3]
        if letter == "%" and not (
            len(digits) == 2 and all(d in "0123456789abcdefABCDEF" for d in digits)
        ):
            raise PredicateError(
                f"cannot read {value[:40]!r} as an encoded text",
                hint="try_url_decode returns NULL instead",
            )
    return unquote_plus(value, errors="replace")


_SHA1: Final = Function((bytes_of,), _STRING, each(_sha1))

FUNCTIONS: Final[dict[str, Any]] = {
    "md5": Function((bytes_of,), _STRING, each(_md5)),
    "sha": _SHA1,
    "sha1": _SHA1,
    "sha2": Function((bytes_of, int32), _STRING, each(_sha2)),
    "crc32": Function((bytes_of,), pa.int64(), each(zlib.crc32)),
    "hex": Function((_hexed,), _STRING, each(_hex)),
    "unhex": Function((text,), pa.binary(), each(_unhex)),
    "bin": Function((int64,), _STRING, each(_bin)),
    "base64": Function((bytes_of,), _STRING, each(_base64)),
    "url_encode": Function((text,), _STRING, each(_url_encode)),
    "url_decode": Function((text,), _STRING, each(_url_decode)),
    "try_url_decode": Function((text,), _STRING, tried(each(_url_decode))),
}
