"""Values that Spark and Arrow have and Python does not: whoever reads a log is shown them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from nilometer.kernels.json_values import rows_of
from nilometer.kernels.row_errors import RowErrors, Rows, compute, leaving_out
from nilometer.model.expressions import Argument, Binary, Constant, Operator

FAR = pa.array([2**62, 5], pa.int64()).view(pa.timestamp("us", tz="UTC"))
LATE = pa.array([2_932_897, 0], pa.int32()).view(pa.date32())
NO_TEXT = pa.array([b"\xbc", b"a"], pa.binary()).view(pa.string())
NESTED = pa.StructArray.from_arrays([FAR, LATE], ["t", "d"])


@pytest.mark.parametrize(
    ("column", "odd", "usual"),
    [
        (FAR, "17036-07-06T14:00:27.387904Z", "1970-01-01T00:00:00.000005Z"),
        (LATE, "10000-01-01", "1970-01-01"),
        (NO_TEXT, "\ufffd", "a"),
        (
            NESTED,
            "{'t': '17036-07-06 14:00:27.387904Z', 'd': '10000-01-01'}",
            {"t": "1970-01-01T00:00:00.000005Z", "d": "1970-01-01"},
        ),
    ],
)
def test_a_value_that_python_does_not_have_is_written_as_text(
    column: pa.Array, odd: object, usual: object
) -> None:
    rows = rows_of(pa.table({"v": column}))
    assert rows == [{"v": odd}, {"v": usual}]
    json.dumps(rows)


def test_a_row_with_such_values_that_cannot_be_computed_is_reported() -> None:
    divided = Binary(Operator.DIVIDE, Constant(1), Argument(4))
    zeros = pa.array([0, 1])
    rows = Rows([FAR, LATE, NO_TEXT, NESTED, zeros], 2, ["t", "d", "s", "n", "v"])
    errors = RowErrors()
    with leaving_out(errors):
        [values], mask = compute([(divided, pa.float64())], rows)
    assert values.to_pylist() == [1.0]
    assert mask is not None
    assert mask.tolist() == [1]
    [error] = errors.noted
    assert json.loads(error.row)["t"].startswith("17036-07-06")
    assert json.loads(error.row)["s"] == "\ufffd"
