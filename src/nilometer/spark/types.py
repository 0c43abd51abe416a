"""Spark's types: which can be keys, the common type of two, and their Arrow types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from nilometer.spark import versions

_INTEGERS = (ByteType(), ShortType(), IntegerType(), LongType())
_FLOATS = (FloatType(), DoubleType())
_FLAT = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)


def is_flat(kind: DataType) -> bool:
    """Whether columns of the type pass through Spark's pandas interface untouched."""
    return isinstance(kind, _FLAT)


def common_key_type(kinds: Sequence[DataType]) -> DataType | None:
    """The type in which keys of these types are compared, if there is one."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(nullable(kind) == nullable(first) for kind in kinds):
        return nullable(first)
    for family in (_INTEGERS, _FLOATS):
        if all(kind in family for kind in kinds):
            return max(kinds, key=family.index)
    if all(isinstance(kind, DecimalType) for kind in kinds):
        return _common_decimal([kind for kind in kinds if isinstance(kind, DecimalType)])
    return None


def nullable(kind: DataType) -> DataType:
    """The same type with NULLs allowed everywhere inside it."""
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType), True)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, nullable(f.dataType), True) for f in kind.fields])
    if isinstance(kind, MapType):
        return MapType(nullable(kind.keyType), nullable(kind.valueType), True)
    return kind


def _common_decimal(kinds: Sequence[DecimalType]) -> DecimalType | None:
    scale = max(kind.scale for kind in kinds)
    precision = max(kind.precision - kind.scale for kind in kinds) + scale
    return DecimalType(precision, scale) if precision <= 38 else None


def why_no_key(kind: DataType) -> str | None:
    """Why a column of this type cannot be a key; None if it can."""
    name = kind.typeName()
    if name in ("map", "variant", "void", "interval", "geometry", "geography"):
        return f"values of type {kind.simpleString().upper()} cannot be compared for equality"
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        return f"strings with the collation of {kind.simpleString()} are not compared byte by byte"
    children = [f.dataType for f in kind.fields] if isinstance(kind, StructType) else []
    element = getattr(kind, "elementType", None)
    for child in [*children, *([element] if element is not None else [])]:
        if reason := why_no_key(child):
            return reason
    return None


def arrow_schema(kinds: Sequence[DataType]) -> pa.Schema:
    """Columns c0, c1, … of these types as Nilometer stores them: timestamps in UTC."""
    fields = [StructField(f"c{i}", kind) for i, kind in enumerate(kinds)]
    return versions.arrow_schema(StructType(fields))


def arrow_types(schema: StructType) -> tuple[pa.DataType | None, ...]:
    """The types of columns as Nilometer stores them; None where there is no such type."""
    return tuple(_arrow_type(field.dataType) for field in schema.fields)


def _arrow_type(kind: DataType) -> pa.DataType | None:
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        return None  # Arrow would compare such strings bytewise
    try:
        return arrow_schema([nullable(kind)]).types[0]
    except PySparkTypeError:
        return None
