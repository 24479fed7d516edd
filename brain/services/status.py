"""What this brain holds, what it runs on, and whether its parts agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import brain
from brain import migrate
from brain.embedders import Embedder
from brain.errors import BrainError
from brain.layers import LAYERS
from brain.repository import closings, visibility
from brain.repository import models as model_repository
from brain.repository import status as repository
from brain.services import models
from brain.times import format_instant
from brain.work import Work


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that doctor looked at."""

    name: str
    ok: bool
    finding: str


async def overview(work: Work, embedder: Embedder) -> dict[str, Any]:
    """Return counts by layer, the caller's binding and rights, the model and the versions, as of the instant."""
    caller = work.caller
    active = await model_repository.active(work)
    server = await repository.server(work)
    return {
        "namespace": caller.namespace,
        "as_of": format_instant(work.as_of),
        "project": str(caller.project) if caller.project else "",
        "client": caller.client,
        "session": caller.session,
        "read_only": caller.read_only,
        "write_scope": caller.write_scope,
        "time_zone": str(work.zone),
        "language": work.language,
        "visible_rows": await repository.counts(work),
        "embedding_model": active.model if active else embedder.model,
        "facts_without_vector": await repository.pending(work, embedder.model),
        "version": brain.__version__,
        "schema": server["schema_version"],
        "postgres": server["server_version"] // 10_000,
        "pgvector": server["vector_version"],
    }


async def checks(work: Work, embedder: Embedder) -> list[Check]:
    """Look at everything that could make an answer wrong; each finding says what is so."""
    server = await repository.server(work)
    bound, open_tables = not server["bypasses_policies"], server["unprotected_tables"]
    found = [
        Check("postgres", server["server_version"] >= 160_000, f"PostgreSQL {server['server_version'] // 10_000}"),
        Check("pgvector", bool(server["vector_version"]), f"vector {server['vector_version']}"),
        Check("schema", server["schema_version"] == migrate.head(), f"schema {server['schema_version']}"),
        Check("row-level security", bound, f"the role in use {'is subject to' if bound else 'bypasses'} the policies"),
        Check("protected tables", not open_tables, f"{open_tables} tables without forced policies"),
    ]
    for layer in LAYERS.values():
        if layer.valid_time:
            wrong = await visibility.mismatched_keys(work, layer)
            found.append(Check(f"{layer.name} visibility", not wrong, f"{len(wrong)} keys differ from their log"))
    miscounted = await closings.mismatched(work)
    found.append(Check("memory closings", not miscounted, f"{len(miscounted)} rows are not counted as their log says"))
    try:
        await models.matches(work, embedder)
        found.append(Check("embedding model", True, embedder.model))
    except BrainError as error:
        found.append(Check("embedding model", False, f"{error.message} {error.hint}"))
    waiting = await repository.pending(work, embedder.model)
    found.append(Check("vectors", waiting == 0, f"{waiting} facts wait for a vector"))
    return found
