"""Write docs/schema.sql: what the migrations make of an empty database, as pg_dump tells it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from brain import cluster, embedded, migrate

DOCUMENT = Path(__file__).parent.parent / "docs" / "schema.sql"
_HEADING = "-- Written by `make schema` from the migrations, which are what counts. A test keeps it equal to them.\n"
_NOISE = re.compile(r"--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog\.set_config.*")


def document(dsn: str) -> str:
    """Return the schema of a migrated database as one SQL text, without what differs between two dumps."""
    dump = [cluster.programs() / "pg_dump", "--schema-only", "--no-owner", "--exclude-table=alembic_version", dsn]
    done = subprocess.run(dump, check=True, capture_output=True, text=True)  # noqa: S603 - our own program and database
    lines = [line.rstrip() for line in done.stdout.splitlines() if not _NOISE.fullmatch(line)]
    return _HEADING + "\n" + re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def main() -> int:
    """Write the document."""
    with embedded.temporary() as server:
        migrate.upgrade(server.dsn)
        DOCUMENT.write_text(document(server.dsn), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
