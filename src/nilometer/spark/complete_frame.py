"""Complete answers as DataFrames: without times, at one instant, in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField

from nilometer.operators.change_operator import DIFF, TIME
from nilometer.operators.change_specs import SortKey
from nilometer.spark.inputs import Inputs
from nilometer.spark.run_query import run_query
from nilometer.spark.snapshot import snapshot
from nilometer.sql.questions import END, Finish, Question

_AFTER_ALL: Final = datetime.max.replace(tzinfo=UTC)
_WITHOUT_ORDER: Final = ("map<", "variant", "interval", "geo")


def answer_question(
    question: Question,
    inputs: Inputs,
    beats: int | None = None,
    at: str | datetime | None = None,
) -> DataFrame:
    """The answer to a query; `at`: its rows at an instant, or at the end."""
    answer = run_query(question.plan, inputs, beats)
    if question.is_plain:
        answer = _plain_rows(answer)
    elif at is not None:
        answer = snapshot(answer, _AFTER_ALL if at == END else at)
    return _finish(answer, question.finish)


def sort_frame(frame: DataFrame, keys: Sequence[SortKey]) -> DataFrame:
    """The rows ordered by these columns, then by all columns, as one partition.

    To sort several partitions, Spark would compute them twice.
    """
    fields = frame.schema.fields
    every = [*keys, *(SortKey(place) for place in range(len(fields)))]
    chosen = [_column(key) for key in every if _has_order(fields[key.column])]
    if not chosen:
        return frame
    return _numbered(frame).repartition(1).sortWithinPartitions(*chosen).toDF(*frame.columns)


def _plain_rows(answer: DataFrame) -> DataFrame:
    """Rows of static tables, which have no time and never change."""
    names = answer.columns
    if names[-2:] == [TIME, DIFF]:
        return snapshot(answer)
    places = [place for place, name in enumerate(names) if name != TIME]
    return _only(answer, places)


def _finish(answer: DataFrame, finish: Finish) -> DataFrame:
    if not finish.is_needed:
        return answer
    ordered = sort_frame(answer, finish.keys)
    if finish.offset:
        ordered = ordered.offset(finish.offset)
    if finish.limit is not None:
        ordered = ordered.limit(finish.limit)
    places = [place for place in range(len(answer.columns)) if place not in finish.hidden]
    return _only(ordered, places)


def _only(frame: DataFrame, places: Sequence[int]) -> DataFrame:
    """Some columns, by position: names may be duplicated."""
    chosen = _numbered(frame).select(*(f"c{place}" for place in places))
    return chosen.toDF(*(frame.columns[place] for place in places))


def _numbered(frame: DataFrame) -> DataFrame:
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


def _column(key: SortKey) -> Column:
    column = F.col(f"c{key.column}")
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def _has_order(field: StructField) -> bool:
    return not any(kind in field.dataType.simpleString() for kind in _WITHOUT_ORDER)
