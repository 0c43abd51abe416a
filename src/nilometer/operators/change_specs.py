"""The parameters of the operators of windowed plans."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nilometer.kernels.arrays import Int64s
from nilometer.kernels.order_codes import sort_codes


class SetFunction(StrEnum):
    """A count over time as a function of one or two others, per distinct row.

    The inputs hold s and r copies of a row.
    """

    DISTINCT = "DISTINCT"  # min(1, s)
    UNION = "UNION"  # min(1, s + r)
    INTERSECT = "INTERSECT"  # min(1, s, r)
    INTERSECT_ALL = "INTERSECT ALL"  # min(s, r)
    EXCEPT = "EXCEPT"  # 1 if s > 0 and r = 0
    EXCEPT_ALL = "EXCEPT ALL"  # max(0, s - r)
    WITHOUT = "WITHOUT"  # s if r = 0: rows that have no partner
    WITH = "WITH"  # s if r > 0: rows that have one


class AggregateFunction(StrEnum):
    """A value of all rows of a group; NULLs do not count, except in COUNT(*)."""

    COUNT_ROWS = "COUNT(*)"
    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    VAR_SAMP = "VAR_SAMP"
    VAR_POP = "VAR_POP"
    COVAR_SAMP = "COVAR_SAMP"
    COVAR_POP = "COVAR_POP"
    SKEWNESS = "SKEWNESS"
    KURTOSIS = "KURTOSIS"
    STDDEV_SAMP = "STDDEV_SAMP"
    STDDEV_POP = "STDDEV_POP"
    PERCENTILE = "PERCENTILE"
    PERCENTILE_DISC = "PERCENTILE_DISC"
    PERCENTILE_APPROX = "APPROX_PERCENTILE"  # exact, and of the type of its argument
    MIN_BY = "MIN_BY"
    MAX_BY = "MAX_BY"
    LIST = "COLLECT_LIST"
    SET = "COLLECT_SET"
    TEXT = "STRING_AGG"
    MODE = "MODE"
    BIT_AND = "BIT_AND"
    BIT_OR = "BIT_OR"
    BIT_XOR = "BIT_XOR"


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of ORDER BY."""

    column: int
    descending: bool = False
    nulls_first: bool = True

    def codes(self, codes: Int64s) -> Int64s:
        """The order codes of the column as this sorts them."""
        return sort_codes(codes, descending=self.descending, nulls_first=self.nulls_first)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function of a column."""

    function: AggregateFunction
    column: int | None = None
    """The position of its argument among the input columns; None for COUNT(*)."""
    distinct: bool = False
    fraction: float | None = None
    """The fraction of a percentile: 0.5 is the median. PERCENTILE interpolates between two values;
    PERCENTILE_DISC is the first of them."""
    separator: str = ""
    """The separator of STRING_AGG."""
    reverse: bool = False
    """Whether lists, texts and PERCENTILE_DISC begin with the last value in their order."""
    rank: int = 0
    """For MIN_BY and MAX_BY: how many values precede the one that is returned."""
    order: tuple[SortKey, ...] = ()
    """For MIN_BY and MAX_BY: the fields that order values first, before all fields do."""
