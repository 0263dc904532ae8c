"""The application held to its own OpenAPI document by generated requests.

What begins a run of a kept conversation is left out: it would outlive the request that began it.
`tests/unit/web` has these two.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import positive_data_acceptance

from ibid.domain.projects import GitSource
from tests.fakes.app import ANN, FakeApp

APP = FakeApp(change=lambda services: replace(services, principal=ANN, dev_principals=False))
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP.app).exclude(
    path_regex="^/conversations/[^/]+/(messages|runs)$", method="POST"
)


async def kept_ids() -> Mapping[str, str]:
    """Keep one of everything, and return the ids by the names of the paths' parameters."""
    project = await APP.project(source=GitSource(url="https://git.test/shop"))
    conversation = await APP.conversation(project=project)
    job_id, _ = await APP.start_index(project, source=None, force=False)
    async with APP.client() as ann:
        path = f"/conversations/{conversation.id}/messages"
        answer = await ann.post(path, json={"question": "Where?"})
        announced = await ann.post(
            f"/projects/{project.id}/uploads", json={"fileName": "shop.zip", "bytes": 4}
        )
    return {
        "projectId": project.id,
        "conversationId": conversation.id,
        "runId": answer.json()["runId"],
        "jobId": job_id,
        "uploadId": announced.json()["uploadId"],
    }


@pytest.mark.parametrize("ids", ["generated", "kept"])
@SCHEMA.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_document_names(
    case: schemathesis.Case[Any], ids: str
) -> None:
    if ids == "kept" and case.path_parameters:
        kept = asyncio.run(kept_ids())
        case.path_parameters = {name: kept[name] for name in case.path_parameters}

    # A cursor, a key or a source can be refused for what no schema says.
    case.call_and_validate(excluded_checks=[positive_data_acceptance])
