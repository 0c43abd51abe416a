"""The answer to an HTTP/1.1 request, parsed from bytes as they arrive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_LONGEST_HEAD: Final = 1 << 16
_NO_BODY: Final = (204, 304)
_DECIMAL: Final = re.compile(r"[0-9]{1,18}")
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")


class BadAnswerError(Exception):
    """An answer that is not HTTP, or too long."""


@dataclass(frozen=True)
class HttpAnswer:
    """An answer; header names are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    is_kept: bool
    """Whether the connection can be used again."""


class AnswerReader:
    """Reads one answer with a limited body; BadAnswerError says what is wrong."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._status = 0
        self._reason = ""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._length: int | None = None
        self._is_chunked = False
        self._is_kept = False

    def feed(self, data: bytes) -> HttpAnswer | None:
        """The answer, if it is complete now."""
        self._buffer += data
        while not self._status:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _LONGEST_HEAD:
                    raise BadAnswerError("an answer with incomplete headers")
                return None
            self._read_head(bytes(self._buffer[:end]).decode("latin-1"))
            del self._buffer[: end + 4]
        if self._is_chunked:
            return self._answer() if self._read_chunks() else None
        return self._read_plain()

    def end(self) -> HttpAnswer | None:
        """The answer, if the end of the connection completes it."""
        if self._status and self._length is None and not self._is_chunked:
            return self._answer()
        return None

    def _read_head(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        if any(one in line for line in (first, *lines) for one in "\r\n\0"):
            # Anything repeated in another request, such as an ETag, would become lines of that
            # request.
            raise BadAnswerError("an answer with a header of several lines")
        version, _, rest = first.partition(" ")
        code, _, reason = rest.partition(" ")
        if not version.startswith("HTTP/1.") or not (code.isdecimal() and len(code) == 3):
            raise BadAnswerError("an answer that is not HTTP/1.1")
        if code[0] == "1":
            return  # the actual answer follows this one
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._status, self._reason, self._headers = int(code), reason, headers
        connection = headers.get("connection", "").lower()
        self._is_kept = version != "HTTP/1.0" and connection != "close"
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        if self._status in _NO_BODY:
            self._length, self._is_chunked = 0, False
        elif (length := headers.get("content-length")) is not None and not self._is_chunked:
            if not _DECIMAL.fullmatch(length):
                raise BadAnswerError("an answer whose length is not a number")
            self._length = int(length)
            self._check(self._length)

    def _read_plain(self) -> HttpAnswer | None:
        self._body += self._buffer
        self._buffer.clear()
        if self._length is None:
            self._check(len(self._body))
            self._is_kept = False
            return None
        if len(self._body) < self._length:
            return None
        # Anything beyond the announced length belongs to no request.
        self._is_kept &= len(self._body) == self._length
        del self._body[self._length :]
        return self._answer()

    def _read_chunks(self) -> bool:
        """Whether the last chunk has arrived."""
        while (end := self._buffer.find(b"\r\n")) >= 0:
            text = bytes(self._buffer[:end]).split(b";")[0].strip()
            if not _HEXADECIMAL.fullmatch(text):  # Python's int accepts signs, too
                raise BadAnswerError("an answer with a chunk without length")
            length = int(text, 16)
            self._check(len(self._body) + length)
            if length == 0:
                # Trailers may follow, up to an empty line.
                if self._buffer.find(b"\r\n\r\n", end) >= 0:
                    return True
                if len(self._buffer) > _LONGEST_HEAD:
                    raise BadAnswerError("an answer whose trailers do not end")
                return False
            if len(self._buffer) < end + 4 + length:
                return False
            self._body += self._buffer[end + 2 : end + 2 + length]
            del self._buffer[: end + 4 + length]
        if len(self._buffer) > _LONGEST_HEAD:
            raise BadAnswerError("an answer with a chunk without length")
        return False

    def _check(self, length: int) -> None:
        if length > self._max_bytes:
            raise BadAnswerError(f"an answer of more than {self._max_bytes} bytes")

    def _answer(self) -> HttpAnswer:
        return HttpAnswer(
            self._status, self._reason, self._headers, bytes(self._body), self._is_kept
        )
