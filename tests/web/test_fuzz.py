"""Requests that nobody would make, drawn from the server's own OpenAPI by schemathesis.

More of them, and for longer: KEISEI_FUZZ_EXAMPLES=500 pytest tests/web/test_fuzz.py
"""

import os
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks

from keisei.web.app import create_app
from tests.web.test_play import PLAYER, begin

EXAMPLES = int(os.environ.get("KEISEI_FUZZ_EXAMPLES", "8"))


def without_tuples(schema):
    """The schema without `prefixItems`, which schemathesis takes for an older way to say it."""
    if isinstance(schema, list):
        return [without_tuples(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: without_tuples(part) for key, part in schema.items() if key != "prefixItems"}


SCHEMA = schemathesis.openapi.from_dict(without_tuples(create_app(Path("nowhere")).openapi()))
OPERATIONS = {
    operation.ok().label: operation.ok()
    for operation in SCHEMA.get_all_operations()
    if "stream" not in operation.ok().path  # they do not end
}
CHECKS = [
    checks.not_a_server_error,
    checks.CHECKS.get_one("status_code_conformance"),
    checks.CHECKS.get_one("content_type_conformance"),
    checks.CHECKS.get_one("response_schema_conformance"),
]
RUNS = st.sampled_from(["first", "hunt", "..", "nobody"])


def test_the_schema_has_every_address():
    assert len(OPERATIONS) >= 16


@pytest.mark.parametrize("label", OPERATIONS)
def test_no_request_makes_the_server_fail(client, label):
    operation = OPERATIONS[label]
    game = begin(client)["id"]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize="KEISEI_FUZZ_EXAMPLES" not in os.environ,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), run=st.none() | RUNS, known=st.booleans())
    def ask(case, run, known):
        # Of random names hardly one is known: some requests go to what is there.
        if "run" in case.path_parameters and run:
            case.path_parameters["run"] = run
        if "game" in case.path_parameters and known:
            case.path_parameters["game"] = game
        if "number" in case.path_parameters and known:
            case.path_parameters["number"] = 1
        if isinstance(case.body, dict) and "player" in case.body and known:
            case.body["player"] = PLAYER
        case.call_and_validate(base_url=str(client.base_url), checks=CHECKS, timeout=60)

    ask()
