"""A checksum after the content of a small file, so that any damage is detected."""

from __future__ import annotations

import re
import zlib
from typing import Final

_MARK: Final = b"\ncrc32 "
_SEAL: Final = re.compile(rb"\ncrc32 ([0-9a-f]{8})\n")
_LENGTH: Final = len("\ncrc32 01234567\n")
_ALIKE: Final = len(_MARK) - 1


def seal(content: bytes) -> bytes:
    """The content with its checksum on a line of its own.

    >>> unseal(seal(b"{}"))
    b'{}'
    """
    return b"%b\ncrc32 %08x\n" % (content, zlib.crc32(content))


def unseal(content: bytes) -> bytes:
    """The sealed content; raises ValueError if it was altered. Earlier releases sealed nothing."""
    end, rest = content[-_LENGTH:], content[:-_LENGTH]
    match = _SEAL.fullmatch(end)
    if match is None:
        if sum(one == other for one, other in zip(end, _MARK, strict=False)) >= _ALIKE:
            raise ValueError("its checksum is damaged")
        return content
    if zlib.crc32(rest) != int(match[1], 16):
        raise ValueError("its checksum is wrong")
    return rest
