"""The server processes of the bench of runs."""

import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.bench.run_client import Client
from tests.bench.streams import free_port, serving
from tests.fakes.ministack import KEYS


def in_dynamodb(url: str) -> Mapping[str, str]:
    """Return the environment of a server on tables of its own at an address."""
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    return {
        "IBID_STORE": "dynamodb",
        "IBID_APP_TABLE": f"{prefix}-app",
        "IBID_CHECKPOINTS_TABLE": f"{prefix}-checkpoints",
        "IBID_WRITES_TABLE": f"{prefix}-writes",
        "IBID_BUCKET": prefix,
        "IBID_CREATE_TABLES": "true",
        "AWS_ENDPOINT_URL": url,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": KEYS["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": KEYS["aws_secret_access_key"],
    }


@asynccontextmanager
async def serving_client(
    data: Path, sources: Path, environ: Mapping[str, str]
) -> AsyncIterator[Client]:
    """Run a server on a data folder until the client is done with it."""
    port = free_port()
    module = "tests.bench.run_server"
    command = [sys.executable, "-m", module, str(port), str(data), str(sources)]
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(
            serving(command, port, "/healthz", cwd=None, **environ)
        )
        client = Client(base)
        stack.push_async_callback(client.http.aclose)
        yield client
