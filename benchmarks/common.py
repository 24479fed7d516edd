"""What every benchmark shares: its arguments, a fresh brain, its table on the screen and its results in a file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import psutil
import psycopg
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from brain import config, embedded, runtime, server_memory
from brain.config import Settings
from brain.embedders import Embedder
from brain.runtime import Brain
from brain.text import ANALYSIS_VERSION

SERVER: Final = {
    "shared_buffers": server_memory.shared_buffers(),
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}
"""Settings of the temporary server: as durable as a real one, so that loading is not flattered."""
PATIENCE_MS: Final = 600_000
_PLAIN_WIDTH: Final = 120


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every benchmark takes."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--json", type=Path, metavar="OUT", help="file for the results")
    made.add_argument("--embedder", help="embedding provider; by default the configured one")
    return made


def add_data(to: argparse.ArgumentParser, what: str) -> None:
    """Add the argument that names the public data set, which this project does not carry."""
    to.add_argument("--data", type=Path, metavar="PATH", help=f"{what}; without it the benchmark is skipped")


def required_data(options: argparse.Namespace) -> Path:
    """Return where the data is, or skip the benchmark."""
    if options.data is None:
        skip(options, "its data was not named with --data")
    path: Path = options.data
    if not path.exists():
        skip(options, "the place named with --data does not exist")
    return path


def skip(options: argparse.Namespace, reason: str) -> NoReturn:
    """End the benchmark as skipped, which is not a failure."""
    print(f"Skipped: {reason}.")
    if options.json:
        write_json(options.json, {"bars": {}, "skipped": reason})
    raise SystemExit(0)


@contextmanager
def fresh_settings(options: argparse.Namespace) -> Iterator[Settings]:
    """Yield settings of an empty brain: a new namespace of DATABASE_URL, or else a temporary server of its own."""
    found = config.load(embedder=options.embedder)
    with ExitStack() as stack:
        url = found.database_url or SecretStr(stack.enter_context(embedded.temporary(settings=SERVER)).dsn)
        fresh = {
            "database_url": url,
            "namespace": f"benchmark-{secrets.token_hex(4)}",
            "project": "",
            "statement_timeout_ms": PATIENCE_MS,
            "lock_timeout_ms": PATIENCE_MS,
        }
        yield found.model_copy(update=fresh)


def open_brain(settings: Settings) -> Brain:
    """Return the brain as a human's import sees it, bound to no project."""
    return runtime.open_brain(settings, origin="import", client="benchmark")


async def tidy(brain: Brain) -> str:
    """Do at once what autovacuum does within a minute of a bulk load; return the version of the server."""
    async with await psycopg.AsyncConnection.connect(await brain.database.owner_dsn(), autocommit=True) as connection:
        await connection.execute("VACUUM ANALYZE memory, memory_visible, postings, embeddings")
        return str(connection.info.parameter_status("server_version") or "")


def machine(server: str, embedder: Embedder) -> dict[str, Any]:
    """Describe where and with what the figures were measured, without names of hosts or places."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "postgres": server.split()[0] if server else "",
        "embedding_model": embedder.model,
        "analysis": ANALYSIS_VERSION,
    }


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: text to the left, figures to the right."""
    drawn = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        drawn.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        drawn.add_row(*(str(each) for each in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    console.print(drawn)


def note(message: str) -> None:
    """Say what takes a while, beside the results."""
    print(message, file=sys.stderr, flush=True)


def percent(share: float | None) -> str:
    """Return a share as people read it."""
    return "-" if share is None else f"{100 * share:.1f}"


def finish(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Write the results, of which `bars` holds the figures that documents quote."""
    if options.json:
        write_json(options.json, results)


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Write results as indented JSON."""
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _processor() -> str:
    """Return the processor's model where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
