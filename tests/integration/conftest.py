"""Fixtures that tests of parts together share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from servers.queue_nodes import PostgresNodes


@pytest.fixture
async def nodes(postgres_server: str, postgres_schema: str) -> AsyncIterator[PostgresNodes]:
    """Nodes that share a queue on PostgreSQL, in a schema of the test's own."""
    nodes = PostgresNodes(postgres_server, postgres_schema)
    yield nodes
    await nodes.close()
