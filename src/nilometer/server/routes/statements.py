"""POST /sql, /check and /explain: statements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response

from nilometer.kernels.json_values import columns_of, rows_of
from nilometer.server.access import Reader
from nilometer.server.error_shape import ErrorDetail, responses, shape_of
from nilometer.server.results.formats import MEDIA_TYPES, Format, whole_arrow_stream
from nilometer.server.service import Service
from nilometer.server.shapes import (
    CheckedShape,
    ColumnShape,
    ExecutedShape,
    ExplainRequest,
    PlanShape,
    StatementRequest,
)
from nilometer.server.statement_runner import Executed


def statements_router(service: Service) -> APIRouter:
    """Run, check and explain statements."""
    router = APIRouter(tags=["statements"])

    @router.post(
        "/sql",
        operation_id="execute",
        response_model=ExecutedShape,
        responses=responses(400, 408, 409),
    )
    async def execute(
        request: StatementRequest,
        caller: Reader,
        accept: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> ExecutedShape | Response:
        """Run a statement. What it needs decides which scope the token must have.

        Several, between semicolons, are run in order up to the first that fails; the answer is
        that of the last, and only that can be a query.

        A SELECT over tables is answered at once; one over streams never ends: POST /queries.
        Rows come as an Arrow IPC stream to those who accept one.
        """
        done = await service.execute(request.statement, caller, request.values)
        if done.rows is not None and MEDIA_TYPES[Format.ARROW] in accept:
            return await service.look(lambda: arrow_of_executed(done))
        return await service.look(lambda: shape_of_executed(done))

    @router.post("/check", operation_id="check", responses=responses(400))
    async def check(request: StatementRequest, caller: Reader) -> CheckedShape:
        """Say what is wrong with a statement, without running it."""
        error = await service.check(request.statement, caller, request.values)
        if error is None:
            return CheckedShape(error=None)
        return CheckedShape(error=ErrorDetail(**shape_of(error)["error"]))

    @router.post("/explain", operation_id="explain", responses=responses(400))
    async def explain(request: ExplainRequest, caller: Reader) -> PlanShape:
        """Say what a query would do: its windows, what it keeps, its join order."""
        plan = await service.explain(request.statement, caller, request.form, request.values)
        return PlanShape(plan=plan)

    return router


def shape_of_executed(done: Executed) -> ExecutedShape:
    """The result of a statement, as JSON."""
    if done.rows is None:
        return ExecutedShape(message=done.message, columns=[], rows=[], is_cut=False)
    return ExecutedShape.model_construct(  # the rows need no validation, and there may be thousands
        message=done.message,
        columns=[ColumnShape(**one) for one in columns_of(done.rows.schema)],
        rows=rows_of(done.rows),
        is_cut=done.is_cut,
    )


def arrow_of_executed(done: Executed) -> Response:
    """The rows of a statement as an Arrow IPC stream; its message is in the metadata."""
    assert done.rows is not None
    metadata = {"is_cut": str(done.is_cut).lower()}
    if done.message is not None:
        metadata["message"] = done.message
    content = whole_arrow_stream(done.rows, metadata)
    return Response(content, media_type=MEDIA_TYPES[Format.ARROW])
