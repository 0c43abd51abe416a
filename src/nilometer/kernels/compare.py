"""Comparisons of columns with Spark's semantics: NaN equals itself, and is the largest number."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import UnavailableError
from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.expression_types import common_type
from nilometer.model.expressions import Operator


def compare(operator: Operator, left: pa.Array, right: pa.Array) -> pa.Array:
    """The rows in which a comparison holds; NULL where an operand is NULL."""
    kind = common_type(left.type, right.type)
    if kind is None:
        raise UnavailableError("values of these types cannot be compared here")
    if pat.is_null(kind):
        both_null = pa.repeat(pa.scalar(True), len(left))
        return both_null if operator is Operator.SAME else pa.nulls(len(left), pa.bool_())
    left, right = as_type(left, kind), as_type(right, kind)
    if operator is Operator.SAME:
        same = compare(Operator.EQUAL, left, right).fill_null(False)
        return pc.or_(same, pc.and_(left.is_null(), right.is_null()))
    if operator is Operator.DIFFERENT:
        return pc.invert(compare(Operator.EQUAL, left, right))
    if operator in (Operator.GREATER, Operator.AT_LEAST):
        left, right = right, left
    if operator is Operator.EQUAL:
        result, also = pc.equal(left, right), _nans(pc.and_, left, right)
    elif operator in (Operator.LESS, Operator.GREATER):
        result, also = pc.less(left, right), _nans(pc.and_not, right, left)
    else:
        result, also = pc.less_equal(left, right), _nans(lambda r, _: r, right, left)
    return result if also is None else pc.or_(result, pc.if_else(result.is_valid(), also, None))


def choose(operator: Operator, left: pa.Array, right: pa.Array) -> pa.Array:
    """The left values where the comparison holds, else the right ones; NULLs are passed over."""
    if pat.is_null(left.type):
        return left
    better = pc.if_else(compare(operator, left, right), left, right)
    return pc.coalesce(better, left, right)


def _nans(
    join: Callable[[pa.Array, pa.Array], pa.Array], first: pa.Array, second: pa.Array
) -> pa.Array | None:
    return join(pc.is_nan(first), pc.is_nan(second)) if pat.is_floating(first.type) else None
