"""A server process for the tests of the stdio transport: `python tests/stdio_server.py [noisy|broken]`."""

from brain.tools.stdio import ExitDeadline, loading, reserve_stdin, reserve_stdout

STDOUT = reserve_stdout()
STDIN = reserve_stdin()

print("a banner before the imports")

with loading():
    import logging
    import sys

    import anyio

    from brain.errors import ConfigurationError
    from brain.tools.protocol import build_server
    from brain.tools.stdio import run_stdio
    from tests.dummy_tools import TOOLS, DummySession


def main() -> None:
    if "noisy" in sys.argv:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
    if "broken" in sys.argv:
        print("about to fail")
        raise ConfigurationError("DATABASE_URL is not a URL.")
    deadline = ExitDeadline(cleanup=lambda: print("cleanup ran", file=sys.stderr, flush=True))
    anyio.run(lambda: run_stdio(build_server(TOOLS, DummySession), STDIN, STDOUT, on_end=deadline.arm))
    print("an orderly end", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
