"""A server process for the tests of the stdio transport: `python tests/stdio_server.py [noisy|broken]`."""

from brain.tools.stdio import ExitDeadline, reserve_stdin, reserve_stdout

STDOUT = reserve_stdout()
STDIN = reserve_stdin()

print("a banner before the imports")

import logging  # noqa: E402
import sys  # noqa: E402

import anyio  # noqa: E402

from brain.errors import ConfigurationError  # noqa: E402
from brain.tools.protocol import build_server  # noqa: E402
from brain.tools.stdio import run_stdio  # noqa: E402
from tests.dummy_tools import TOOLS, DummySession  # noqa: E402


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
