"""How requests and answers look as JSON; OpenAPI is made of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from nilometer.client.parameter_json import value_from_json
from nilometer.database.query_status import OnError, QueryLimits, QueryStatus
from nilometer.kernels.json_values import iso_time
from nilometer.server.error_shape import ErrorDetail

_SELECT = "SELECT room, AVG(temperature) AS mean FROM Readings [RANGE 1 MINUTE] GROUP BY room"


class Request(BaseModel):
    """A body, of which no field is taken for another that was misspelt."""

    model_config = ConfigDict(extra="forbid", str_max_length=1 << 20)


class ObjectShape(BaseModel):
    """The shape of an object that has attributes of the same names."""

    model_config = ConfigDict(from_attributes=True)


def _iso(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else iso_time(value)


Instant = Annotated[str, BeforeValidator(_iso)]
"""An instant in ISO's form, made of microseconds since 1970."""


class StatementRequest(Request):
    """A statement, or several between semicolons."""

    statement: str = Field(examples=["SHOW STREAMS"])
    parameters: dict[str, Any] = Field(
        default_factory=dict,
        max_length=1000,
        description="the value of :name: null, a boolean, a number, a text, or "
        '{"type": "TIMESTAMP", "value": "…"}; also DATE, DECIMAL, DOUBLE, BINARY (hexadecimal), '
        "INTERVAL (microseconds)",
        examples=[{}],
    )

    @property
    def values(self) -> dict[str, object]:
        """The values of the parameters."""
        return {name: value_from_json(one) for name, one in self.parameters.items()}


class ExplainRequest(StatementRequest):
    """A query, and the form of its plan."""

    statement: str = Field(examples=[_SELECT])
    form: str = Field(default="text", description="text, or dot for Graphviz", examples=["text"])


class LimitsShape(Request):
    """What one query may take; null: no limit."""

    results: int | None = Field(default=None, ge=0, le=1 << 62, description="bytes of results")
    state: int | None = Field(default=None, ge=0, le=1 << 62, description="bytes of state")
    history: int | None = Field(
        default=None, ge=0, le=1 << 62, description="microseconds for which results are kept"
    )
    on_error: OnError | None = Field(
        default=None,
        description="whether a row that cannot be computed is left out (skip, also if null), "
        "or stops the query (stop)",
    )
    shed: int | None = Field(
        default=None,
        ge=1,
        le=1 << 62,
        description="when more rows of a stream wait than this, only some of them are read",
    )
    shed_by: str | None = Field(
        default=None, description="the worth of a row in that case, as an expression"
    )

    def read(self) -> QueryLimits:
        return QueryLimits(**self.model_dump())


class QueryRequest(Request):
    """A query to be started and kept."""

    statement: str = Field(examples=[_SELECT])
    name: str | None = Field(
        default=None, description="if left out, one is generated", examples=["mean"]
    )
    temporary: bool = Field(
        default=False, description="whether it is dropped when nobody has followed it for a while"
    )
    limits: LimitsShape | None = None


class ColumnShape(BaseModel):
    """A column of an answer."""

    name: str
    type: str = Field(examples=["DOUBLE"])


class ExecutedShape(BaseModel):
    """What a statement did."""

    message: str | None = Field(examples=["2 streams"])
    columns: list[ColumnShape]
    rows: list[dict[str, Any]]
    is_cut: bool = Field(description="whether there were more rows")


class CheckedShape(BaseModel):
    """What is wrong with a statement; null: nothing."""

    error: ErrorDetail | None


class PlanShape(BaseModel):
    """What a query would do."""

    plan: str


class StallShape(ObjectShape):
    """Why a query that runs is stalled."""

    reason: str = Field(
        description="no input: nothing arrives; held: the watermark waits for a stream or sensor; "
        "engine: rows are available but not processed",
        examples=["held"],
    )
    stream: str = Field(description="the stream, or the query, that it waits for")
    sensor: str | None
    since: Instant | None
    text: str = Field(
        validation_alias=AliasChoices("text", "cause"), description="the same in words"
    )


class SpreadShape(ObjectShape):
    """How the rows of a query are spread over its buckets, over the last one to two minutes."""

    bucket_rows: list[int] = Field(description="rows that reached each bucket")
    key: str | None = Field(
        description="the most frequent key of the fullest bucket; null: none is frequent",
        examples=["sensor_id = 'a17'"],
    )
    key_share: float | None = Field(description="its share of all rows")
    is_bottleneck: bool = Field(
        description="whether one bucket has much more than its share, and there is much to do"
    )


class QueryShape(ObjectShape):
    """One named query."""

    name: str
    statement: str
    emits: str = Field(description="append or changelog")
    phase: str = Field(examples=["running"])
    created: Instant
    started: Instant | None
    error: str | None
    failures: int
    next_try: Instant | None
    is_temporary: bool
    followers: int
    limits: LimitsShape
    result_rows: int
    result_bytes: int
    state_bytes: int | None
    watermark: Instant | None = Field(
        description="the instant before which its results are complete"
    )
    lag: int | None = Field(description="microseconds by which the watermark is behind now")
    rows_behind: int | None = Field(description="available rows that were not read; null: unknown")
    stalled: StallShape | None = Field(description="why it is stalled; null: it is not")
    dead_letters: int = Field(description="rows left out because they could not be computed")
    engine: str = Field(
        description="where it runs: shared with others, own, or moved because others had to wait"
    )
    spread: SpreadShape | None = Field(
        description="of the stage with the fullest bucket; null: nothing was read lately"
    )


class InputShape(ObjectShape):
    """One stream that a query reads, after one micro-batch."""

    rows: int = Field(description="rows of this micro-batch")
    late: int = Field(description="rows dropped so far because they were late")
    shed: int = Field(description="rows not read so far, as the query was too far behind")
    held: int = Field(
        validation_alias=AliasChoices("held", "buffered"),
        description="rows kept because they may still matter",
    )
    watermark: Instant | None


class SampleShape(ObjectShape):
    """A query after one micro-batch."""

    time: Instant
    input_rows_per_second: float
    output_rows_per_second: float
    state_bytes: int
    watermark_lag: int | None = Field(description="microseconds, then")
    late_rows: int
    shed_rows: int = Field(description="rows not read so far, as the query was too far behind")
    batch_millis: float
    budget_millis: float
    streams: dict[str, InputShape]


class StreamShape(ObjectShape):
    """One stream or sensor table."""

    name: str
    sensors: int
    connected: int
    readers: int
    rows: int
    stored_bytes: int
    watermark: Instant | None
    lag: int | None = Field(description="microseconds by which the watermark is behind now")
    held_by: str | None = Field(description="the sensor that holds the watermark back, if one does")
    held_since: Instant | None = Field(
        description="since when silence keeps the watermark from advancing; null: it advances"
    )
    silent: int = Field(description="sensors that have been silent for longer than expected")
    silent_since: Instant | None = Field(description="since when all sensors are silent; null: no")
    last_arrival: Instant | None = Field(description="when the last reading arrived")
    full: bool
    error: str | None
    dead_letters: int
    dropped: int
    backlog: int = Field(
        description="readings that were kept at their source, stored with their time of arrival"
    )
    behind: int | None = Field(
        description="readings that wait at their source, where that is known (Kafka)"
    )
    durability: str = Field(
        description="where acknowledged rows are: on the server's disk, or in the object store"
    )
    unshipped: int = Field(
        description="rows on the server's disk that are not in the object store yet"
    )
    unshipped_since: Instant | None = Field(description="since when the oldest of them waits")


class SensorShape(ObjectShape):
    """One sensor that some query needs at present."""

    stream: str
    sensor: str
    address: str
    state: str
    since: Instant
    readings: int
    rate: float
    last_value: str | None
    last_time: Instant | None
    delay: int | None = Field(
        description="microseconds by which the last reading came later than its time"
    )
    lag: int | None = Field(description="microseconds since the time of the last reading")
    expected: int | None = Field(
        description="microseconds within which its next reading is expected"
    )
    silent_since: Instant | None = Field(
        description="when it last sent a reading, if that is longer ago than expected"
    )
    errors: int
    last_error: str | None
    dead_letters: int
    duplicates: int
    dropped: int
    backlog: int = Field(
        description="readings that were kept at their source, stored with their time of arrival"
    )
    behind: int | None = Field(
        description="readings that wait at their source, where that is known (Kafka)"
    )


def shape_of_query(status: QueryStatus, followers: int) -> QueryShape:
    limits = status.limits
    values = {name: getattr(status, name, None) for name in QueryShape.model_fields}
    values |= {
        "statement": status.text,
        "followers": followers,
        "limits": LimitsShape(**{name: getattr(limits, name) for name in LimitsShape.model_fields}),
        "spread": status.bottleneck or next(iter(status.spreads), None),
    }
    return QueryShape.model_validate(values)
