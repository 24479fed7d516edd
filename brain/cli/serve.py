"""brain serve: MCP over stdio or HTTP.

It reads its arguments with the standard library, and imports only that before stdout is reserved: a client waits for
the answer to `initialize`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from brain.config import Settings

SUMMARY = "Serve MCP: over stdio to the client that started this process, or over HTTP."


def parser() -> argparse.ArgumentParser:
    """The arguments of brain serve; what is left out comes from the settings."""
    parsed = argparse.ArgumentParser(
        "brain serve",
        description=SUMMARY,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=78),
    )
    add = parsed.add_argument
    add("--http", action="store_true", help="serve Streamable HTTP at /mcp; needs BRAIN_HTTP_TOKEN")
    add("--host", metavar="ADDRESS", help="address to bind, with --http (BRAIN_HTTP_HOST)")
    add("--port", metavar="NUMBER", help="port to bind, with --http (BRAIN_HTTP_PORT)")
    add("--project", metavar="NAME", help="project that this process is bound to (BRAIN_PROJECT)")
    add(
        "--project-from",
        choices=("folder", "remote"),
        help="where the project's name comes from otherwise: the checkout's folder, or its origin address",
    )
    add("--read-only", action="store_true", default=None, help="offer only the reading tools, and refuse every write")
    add("--write-scope", choices=("project", "lane", "all"), help="where writes may go (BRAIN_WRITE_SCOPE)")
    add("--namespace", metavar="NAME", help="the brain to serve (BRAIN_NAMESPACE)")
    add("--client", metavar="NAME", help="name stamped on every write; default: what the client says of itself")
    return parsed


def main(arguments: Sequence[str], *, namespace: str | None = None) -> NoReturn:
    """Run the command and end the process: 0 after the client left, 1 after a failure, 2 for bad input."""
    given = parser().parse_args(arguments)
    if not given.http and (given.host or given.port):
        parser().error("--host and --port need --http")
    given.namespace = given.namespace or namespace
    sys.exit(_over_http(given) if given.http else _over_stdio(given))


def _settings(given: argparse.Namespace) -> Settings:
    from brain.config import load

    return load(
        project=given.project,
        project_from=given.project_from,
        read_only=given.read_only,
        write_scope=given.write_scope,
        namespace=given.namespace,
        client=given.client,
        http_host=given.host,
        http_port=given.port,
    )


def _over_stdio(given: argparse.Namespace) -> int:
    from brain.tools.stdio import loading, reserve_stdin, reserve_stdout

    stdout, stdin = reserve_stdout(), reserve_stdin()

    def run() -> None:
        with loading():
            import asyncio

            from brain.tools.server import project_of_folder, surface
            from brain.tools.stdio import ExitDeadline, run_stdio

            settings = _settings(given)
            _log_to_stderr(settings)
            served = surface(settings, project=project_of_folder)
            server = served.server()

        async def session() -> None:
            deadline = ExitDeadline(cleanup=served.abandon)
            try:
                await run_stdio(server, stdin, stdout, on_end=deadline.arm)
            finally:
                deadline.arm()
                await served.close()

        # The database driver needs this loop on Windows.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(session())

    return _guarded(run)


def _over_http(given: argparse.Namespace) -> int:
    def run() -> None:
        from brain.runtime import run as run_to_end
        from brain.web.server import serve

        settings = _settings(given)
        _log_to_stderr(settings)
        where = f"http://{settings.http_host}:{settings.http_port}/mcp"

        def ready() -> None:
            print(f"Serving at {where}", file=sys.stderr, flush=True)  # noqa: T201

        run_to_end(lambda: serve(settings, ready=ready))

    return _guarded(run)


def _guarded(run: Any) -> int:
    """Run to the end; one line on standard error says why it could not, and anything unforeseen has an id there."""
    from brain.errors import BrainError

    try:
        run()
    except KeyboardInterrupt:
        return 0
    except BrainError as error:
        print(f"brain serve: {error.message} {error.hint}".rstrip(), file=sys.stderr)  # noqa: T201
        return error.exit_code
    except Exception:  # noqa: BLE001 - the outermost adapter
        from brain.tools.protocol import internal_error

        print(f"brain serve: {internal_error('serve')}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _log_to_stderr(settings: Settings) -> None:
    import logging

    logging.basicConfig(
        level=settings.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
