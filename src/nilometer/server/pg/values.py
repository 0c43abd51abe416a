"""Values of our types in PostgreSQL's text and binary formats."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat

from nilometer.server.pg.wire import ColumnShape

BOOL: Final = 16
BYTEA: Final = 17
INT8: Final = 20
INT2: Final = 21
INT4: Final = 23
TEXT: Final = 25
JSON: Final = 114
FLOAT4: Final = 700
FLOAT8: Final = 701
DATE: Final = 1082
TIME: Final = 1083
TIMESTAMP: Final = 1114
TIMESTAMPTZ: Final = 1184
INTERVAL: Final = 1186
NUMERIC: Final = 1700
_ARRAYS: Final = {
    BOOL: 1000,
    INT2: 1005,
    INT4: 1007,
    INT8: 1016,
    TEXT: 1009,
    FLOAT4: 1021,
    FLOAT8: 1022,
    TIMESTAMPTZ: 1185,
    TIMESTAMP: 1115,
    DATE: 1182,
    NUMERIC: 1231,
}
_SIZES: Final = {BOOL: 1, INT2: 2, INT4: 4, INT8: 8, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIME: 8}
_SIZES_OF_TIMES: Final = {TIMESTAMP: 8, TIMESTAMPTZ: 8, INTERVAL: 16}
_EPOCH: Final = datetime(2000, 1, 1)
_EPOCH_UTC: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PACKED: Final = {INT2: "!h", INT4: "!i", INT8: "!q", FLOAT4: "!f", FLOAT8: "!d"}

Encoder = Callable[[Any], bytes]


@dataclass(frozen=True)
class PgType:
    """A PostgreSQL type."""

    oid: int
    item: PgType | None = None
    """The item type of an array."""

    @property
    def size(self) -> int:
        return (_SIZES | _SIZES_OF_TIMES).get(self.oid, -1)


def pg_type(kind: pa.DataType) -> PgType:
    """The PostgreSQL type for an Arrow type; JSON for those that have none."""
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        item = pg_type(kind.value_type)
        return PgType(_ARRAYS[item.oid], item) if item.oid in _ARRAYS else PgType(JSON)
    for test, oid in _KINDS:
        if test(kind):
            return PgType(oid)
    return PgType(JSON if pat.is_nested(kind) else TEXT)


_KINDS: Final[Sequence[tuple[Callable[[pa.DataType], bool], int]]] = (
    (pat.is_boolean, BOOL),
    (lambda kind: pat.is_int8(kind) or pat.is_int16(kind) or pat.is_uint8(kind), INT2),
    (lambda kind: pat.is_int32(kind) or pat.is_uint16(kind), INT4),
    (lambda kind: pat.is_int64(kind) or pat.is_uint32(kind), INT8),
    (pat.is_uint64, NUMERIC),
    (pat.is_float32, FLOAT4),
    (pat.is_floating, FLOAT8),
    (pat.is_decimal, NUMERIC),
    (pat.is_date, DATE),
    (pat.is_time, TIME),
    (lambda kind: pat.is_timestamp(kind) and kind.tz is not None, TIMESTAMPTZ),
    (pat.is_timestamp, TIMESTAMP),
    (lambda kind: pat.is_duration(kind) or pat.is_interval(kind), INTERVAL),
    (lambda kind: pat.is_binary(kind) or pat.is_large_binary(kind), BYTEA),
)


def shapes_of(schema: pa.Schema, formats: Sequence[int] = ()) -> list[ColumnShape]:
    """The columns of an answer, in the requested formats."""
    shapes = []
    for place, one in enumerate(schema):
        kind = pg_type(one.type)
        wanted = format_of(formats, place)
        shown = wanted if wanted == 0 or _has_binary(kind) else 0
        shapes.append(ColumnShape(one.name, kind.oid, kind.size, shown))
    return shapes


def format_of(formats: Sequence[int], place: int) -> int:
    """The format of one of several values: none is given, one for all, or one for each."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[place]


def encoded_rows(rows: pa.Table, shapes: Sequence[ColumnShape]) -> Iterator[list[bytes | None]]:
    """The values of each row."""
    encoders = [
        _binary(pg_type(one.type)) if shape.format else text_of(pg_type(one.type))
        for one, shape in zip(rows.schema, shapes, strict=True)
    ]
    for batch in rows.to_batches(max_chunksize=1000):
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield [
                None if value is None else encode(value)
                for value, encode in zip(values, encoders, strict=True)
            ]


def text_of(kind: PgType) -> Encoder:
    """A function that converts values to text."""
    if kind.item is not None:
        return _array_text(kind.item)
    return _TEXTS.get(kind.oid, lambda value: str(value).replace("\0", "\ufffd").encode())


def _float_text(value: float) -> bytes:
    if value != value:  # noqa: PLR0124  NaN is not itself
        return b"NaN"
    if value in (float("inf"), float("-inf")):
        return b"Infinity" if value > 0 else b"-Infinity"
    shown = repr(value)
    return shown.removesuffix(".0").encode()


def _instant_text(value: datetime) -> bytes:
    shown = value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return f"{shown}+00".encode()


def _interval_text(value: Any) -> bytes:
    if isinstance(value, timedelta):
        seconds, micros = divmod(value // _MICROSECOND, 1_000_000)
        hours, rest = divmod(seconds, 3600)
        part = f".{micros:06d}" if micros else ""
        return f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}{part}".encode()
    return str(value).encode()


def _array_text(item: PgType) -> Encoder:
    encode = text_of(item)

    def encoded(values: Sequence[Any]) -> bytes:
        parts = [b"NULL" if one is None else _quoted(encode(one)) for one in values]
        return b"{" + b",".join(parts) + b"}"

    return encoded


def _quoted(item: bytes) -> bytes:
    if item and item.upper() != b"NULL" and not any(c in item for c in b'{}," \\\t\n\r'):
        return item
    return b'"' + item.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


_TEXTS: Final[dict[int, Encoder]] = {
    BOOL: lambda value: b"t" if value else b"f",
    FLOAT4: lambda value: _float_text(float(f"{value:.9g}")),
    FLOAT8: _float_text,
    BYTEA: lambda value: b"\\x" + bytes(value).hex().encode(),
    TIMESTAMP: lambda value: value.isoformat(" ").encode(),
    TIMESTAMPTZ: _instant_text,
    INTERVAL: _interval_text,
    JSON: lambda value: json.dumps(value, default=str, ensure_ascii=False).encode(),
}


def _has_binary(kind: PgType) -> bool:
    if kind.item is not None:
        return _has_binary(kind.item)
    return kind.oid in _PACKED or kind.oid in _BINARIES


def _binary(kind: PgType) -> Encoder:
    if kind.item is not None:
        return _array_binary(kind.item)
    if kind.oid in _PACKED:
        packer = struct.Struct(_PACKED[kind.oid])
        return packer.pack
    return _BINARIES[kind.oid]


def _array_binary(item: PgType) -> Encoder:
    encode = _binary(item)

    def encoded(values: Sequence[Any]) -> bytes:
        has_null = any(one is None for one in values)
        dimensions = 1 if values else 0
        head = struct.pack("!iii", dimensions, int(has_null), item.oid)
        if values:
            head += struct.pack("!ii", len(values), 1)
        parts = []
        for one in values:
            content = None if one is None else encode(one)
            parts.append(
                b"\xff\xff\xff\xff"
                if content is None
                else struct.pack("!i", len(content)) + content
            )
        return head + b"".join(parts)

    return encoded


def _numeric_binary(value: Decimal | int) -> bytes:
    """Digits to the base of ten thousand, as in PostgreSQL."""
    number = Decimal(value)
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    scale = max(0, -exponent)
    text = "".join(map(str, digits)) + "0" * max(0, exponent)
    text = text.rjust(scale + 1, "0")
    whole, part = (text[:-scale], text[-scale:]) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    part = part.ljust(-(-len(part) // 4) * 4, "0")
    groups = [int((whole + part)[at : at + 4]) for at in range(0, len(whole + part), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight = 0
    head = struct.pack("!hhHh", len(groups), weight, 0x4000 if sign and groups else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


_BINARIES: Final[dict[int, Encoder]] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    BYTEA: bytes,
    TEXT: lambda value: str(value).replace("\0", "\ufffd").encode(),
    JSON: _TEXTS[JSON],
    DATE: lambda value: struct.pack("!i", (value - _EPOCH.date()).days),
    TIMESTAMP: lambda value: struct.pack("!q", (value - _EPOCH) // _MICROSECOND),
    TIMESTAMPTZ: lambda value: struct.pack(
        "!q", (value.astimezone(UTC) - _EPOCH_UTC) // _MICROSECOND
    ),
    NUMERIC: _numeric_binary,
    TIME: lambda value: struct.pack(
        "!q",
        ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond,
    ),
}


def read_value(content: bytes | None, oid: int, form: int) -> object:
    """A parameter as sent by a client; text if its type is unknown."""
    if content is None:
        return None
    if form == 1 and oid in _READERS:
        return _READERS[oid](content)
    shown = content.decode()
    return _TEXT_READERS.get(oid, str)(shown)


def _read_numeric(content: bytes) -> Decimal:
    """Digits to the base of ten thousand."""
    count, weight, sign, scale = struct.unpack("!hhHh", content[:8])
    if sign not in (0, 0x4000):
        return Decimal({0xD000: "Infinity", 0xF000: "-Infinity"}.get(sign, "NaN"))
    groups = struct.unpack(f"!{count}h", content[8:])
    value = sum(
        (Decimal(one).scaleb(4 * (weight - place)) for place, one in enumerate(groups)), Decimal(0)
    )
    value = value.quantize(Decimal(1).scaleb(-scale)) if scale else value
    return -value if sign else value


def _read_bool(shown: str) -> bool:
    return shown.strip().lower() in ("t", "true", "1", "on", "yes", "y")


def _unpacker(form: str) -> Callable[[bytes], object]:
    def read(content: bytes) -> object:
        value: object = struct.unpack(form, content)[0]
        return value

    return read


_READERS: Final[dict[int, Callable[[bytes], object]]] = {
    BOOL: lambda content: content != b"\0",
    BYTEA: bytes,
    DATE: lambda content: date(2000, 1, 1) + timedelta(days=struct.unpack("!i", content)[0]),
    TIMESTAMP: lambda content: _EPOCH + struct.unpack("!q", content)[0] * _MICROSECOND,
    TIMESTAMPTZ: lambda content: _EPOCH_UTC + struct.unpack("!q", content)[0] * _MICROSECOND,
    NUMERIC: _read_numeric,
    TIME: lambda content: (datetime.min + struct.unpack("!q", content)[0] * _MICROSECOND).time(),
    **{oid: _unpacker(form) for oid, form in _PACKED.items()},
}
_TEXT_READERS: Final[dict[int, Callable[[str], object]]] = {
    BOOL: _read_bool,
    INT2: int,
    INT4: int,
    INT8: int,
    FLOAT4: float,
    FLOAT8: float,
    NUMERIC: Decimal,
    DATE: date.fromisoformat,
    TIMESTAMP: datetime.fromisoformat,
    TIMESTAMPTZ: datetime.fromisoformat,
    TIME: time.fromisoformat,
}
