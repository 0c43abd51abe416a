"""The API does what its OpenAPI document says, whatever is sent: schemathesis tries."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from nilometer.server.settings import ServerSettings
from tests.served import Served, served

HERE = ServerSettings(allowed_hosts=("testserver",))


def test_no_request_breaks_the_server(tmp_path: Path) -> None:
    with served(tmp_path, HERE) as server:
        assert try_all(server, 5) > 20


@pytest.mark.soak
@pytest.mark.limit(1800)
def test_nor_do_many(tmp_path: Path) -> None:
    with served(tmp_path, HERE) as server:
        try_all(server, 300)


def try_all(server: Served, examples: int) -> int:
    """Send so many requests to every operation; how many operations there are."""
    server.database.pretend_spark_lives()
    api = schemathesis.openapi.from_asgi("/openapi.json", server.app)
    operations = [endpoint.ok() for endpoint in api.get_all_operations()]
    for operation in operations:

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def attempt(case: schemathesis.Case) -> None:
            headers = {"Authorization": f"Bearer {server.secrets['admin']}", "Host": "testserver"}
            answer = case.call(headers=headers)
            assert answer.status_code < 500, answer.text
            # that a text is a statement no schema can say
            case.validate_response(answer, excluded_checks=[positive_data_acceptance])

        attempt()
    return len(operations)
