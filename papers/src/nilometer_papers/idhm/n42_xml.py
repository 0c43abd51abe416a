"""XML files from untrusted sources, read into elements of bounded size."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate

from nilometer.errors import InputError, NilometerError

_LARGEST: Final = 64 * 2**20
_LONGEST: Final = 2**20
_DEEPEST: Final = 64
_MOST: Final = 2**20
_PIECE: Final = 2**16


class N42Error(NilometerError):
    """A file is not what it should be."""


def read_xml(path: Path) -> Element:
    """The root of a file. Names lose the root's prefix, those of attributes are lower-case.

    A file that is incomplete, declares a document type or would take much memory is refused.
    """
    text = _content(path)
    reader = _Reader(path.name)
    try:
        for start in range(0, len(text), _PIECE):
            reader.feed(text[start : start + _PIECE])
        return reader.close()
    # The last two: encodings that Python does not know, or that expat cannot take from it.
    except (ExpatError, LookupError, ValueError) as error:
        raise N42Error(f"{path.name} is not well-formed XML", detail=str(error)) from error


def only(outer: Element, name: str) -> Element | None:
    """The one element of this name, if there is any."""
    matches = outer.findall(name)
    if len(matches) > 1:
        raise N42Error(f"there is more than one {name}")
    return matches[0] if matches else None


def whole_text(element: Element | None) -> str:
    """The text of an element without child elements; empty if there is no element."""
    if element is None:
        return ""
    if len(element):
        raise N42Error(f"there are elements in the text of {element.tag}")
    return (element.text or "").strip()


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        text = path.read_bytes() if size <= _LARGEST else b""
    except OSError as error:
        raise InputError(f"cannot read {path}", detail=error.strerror) from error
    if size > _LARGEST:
        raise N42Error(f"{path.name} has {size} bytes; more than {_LARGEST} are not read")
    return text


class _Reader:
    """Expat without namespaces: files in use have prefixes that they do not declare."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._fed = self._depth = self._seen = 0
        self._prefix: str | None = None
        self._builder = TreeBuilder()
        self._parser = ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_declarations
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._builder.data

    def feed(self, piece: bytes) -> None:
        self._parser.Parse(piece, False)
        self._fed += len(piece)
        # What expat has not reported yet is the beginning of one tag or comment.
        if self._fed - self._parser.CurrentByteIndex > _LONGEST:
            raise N42Error(f"{self._name} has a tag or comment of more than {_LONGEST} bytes")

    def close(self) -> Element:
        self._parser.Parse(b"", True)
        return self._builder.close()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._seen += 1 + len(attributes)
        if self._depth > _DEEPEST:
            raise N42Error(f"{self._name} is nested more than {_DEEPEST} elements deep")
        if self._seen > _MOST:
            raise N42Error(f"{self._name} has more than {_MOST} elements and attributes")
        named = {key.lower(): value for key, value in attributes.items()}
        self._builder.start(self._own(name), named)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._builder.end(self._own(name))

    def _own(self, name: str) -> str:
        if self._prefix is None:
            head, colon, _ = name.partition(":")
            self._prefix = head + colon if colon else ""
        return name.removeprefix(self._prefix)

    def _refuse_declarations(self, *_: object) -> None:
        raise N42Error(
            f"{self._name} declares a document type",
            detail="files of this format have none; entities are a way to exhaust memory",
        )
