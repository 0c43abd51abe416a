"""A checksum behind the content of a small file, so that damage is seen whatever it has hit."""

from __future__ import annotations

import re
import zlib
from typing import Final

_MARK: Final = b"\ncrc32 "
_SEAL: Final = re.compile(rb"\ncrc32 ([0-9a-f]{8})\n")
_LENGTH: Final = len("\ncrc32 01234567\n")
_ALIKE: Final = len(_MARK) - 1


def seal(content: bytes) -> bytes:
    """The content, with its checksum in a line of its own.

    >>> unseal(seal(b"{}"))
    b'{}'
    """
    return b"%b\ncrc32 %08x\n" % (content, zlib.crc32(content))


def unseal(content: bytes) -> bytes:
    """What was sealed; ValueError if it is not what it was. Earlier releases sealed nothing."""
    end, rest = content[-_LENGTH:], content[:-_LENGTH]
    found = _SEAL.fullmatch(end)
    if found is None:
        if sum(one == other for one, other in zip(end, _MARK, strict=False)) >= _ALIKE:
            raise ValueError("its checksum is damaged")
        return content
    if zlib.crc32(rest) != int(found[1], 16):
        raise ValueError("its checksum is wrong")
    return rest
