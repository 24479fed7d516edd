"""How a command runs: options that every command has, one brain, one answer, one exit code."""

from __future__ import annotations

import inspect
import logging
import secrets
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from brain import runtime
from brain.cli.output import Answer, print_answer, print_error
from brain.config import Settings, load
from brain.errors import BrainError, InvalidInput
from brain.runtime import Brain

CLIENT = "cli"

AsOf = Annotated[str, typer.Option("--as-of", metavar="INSTANT", help="Answer as the brain stood then.")]
ValidAt = Annotated[
    str, typer.Option("--valid-at", metavar="INSTANT", help="What held in the world then; default --as-of.")
]
Scope = Annotated[str, typer.Option("--scope", help="global, lane:<slug> or project:<slug>.")]
Since = Annotated[str, typer.Option("--since", metavar="WHEN", help="From this date, instant or age such as 7d on.")]
Until = Annotated[str, typer.Option("--until", metavar="WHEN", help="Before this date, instant or age such as 7d.")]
Expected = Annotated[
    int, typer.Option("--expected-version", min=0, metavar="N", help="Version that you read; 0 for a new one.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Ref = Annotated[str, typer.Argument(metavar="REF", help="layer:id, layer:id@version, or the key of a fact.")]

Job = Callable[..., Awaitable[Answer]]


class Unforeseen(BrainError):
    """An error of the program itself."""

    code = "internal"


@dataclass(frozen=True, slots=True)
class Launch:
    """What stands before the command's name."""

    namespace: str = ""


_OPTIONS = (
    ("as_json", bool, typer.Option("--json", help="Print one JSON envelope."), False),
    ("namespace", str, typer.Option("--namespace", metavar="NAME", help="The brain to use (BRAIN_NAMESPACE)."), ""),
    ("project", str, typer.Option("--project", metavar="NAME", help="Project to be bound to; default none."), ""),
)


def command(app: typer.Typer, name: str, job: Job) -> None:
    """Add a command that opens a brain, awaits job(brain, …) and prints its answer.

    The job's parameters after the brain become arguments and options; --json, --namespace and --project join them.
    """

    def run(context: typer.Context, **given: Any) -> None:
        as_json, namespace, project = (given.pop(each) for each, *_ in _OPTIONS)
        before = context.obj.namespace if isinstance(context.obj, Launch) else ""

        async def answer() -> Answer:
            settings = _settings(namespace or before, project)
            return await _with_brain(settings, lambda brain: job(brain, **given))

        execute(answer, as_json=as_json)

    hints = {each: _with_metavar(each, hint) for each, hint in get_type_hints(job, include_extras=True).items()}
    own = list(inspect.signature(job).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
        *(each.replace(kind=keyword, annotation=hints[each.name]) for each in own),
        *(
            inspect.Parameter(each, keyword, default=default, annotation=Annotated[kind, option])
            for each, kind, option, default in _OPTIONS
        ),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    app.command(name, help=inspect.getdoc(job))(run)


def _with_metavar(name: str, hint: Any) -> Any:
    """Name the value of an option after the option, where nothing else is said; flags have none."""
    kind = getattr(hint, "__origin__", hint)
    for info in getattr(hint, "__metadata__", ()):
        if isinstance(info, OptionInfo | ArgumentInfo) and info.metavar is None and "bool" not in str(kind):
            info.metavar = "N" if kind is int else name.upper()
    return hint


def execute(answer: Callable[[], Awaitable[Answer]], *, as_json: bool) -> None:
    """Await an answer, print it, and end the process: 0, or the exit code of what went wrong."""
    try:
        found = runtime.run(answer)
        print_answer(found, as_json=as_json)
        if found.failure is not None:
            raise typer.Exit(found.failure.exit_code)
    except typer.Exit:
        raise
    except BrainError as error:
        print_error(error, as_json=as_json)
        raise typer.Exit(error.exit_code) from None
    except BrokenPipeError:
        raise
    except Exception:  # noqa: BLE001 - the outermost adapter
        print_error(unforeseen(), as_json=as_json)
        raise typer.Exit(1) from None


def unforeseen() -> Unforeseen:
    """Write the exception being handled to standard error under a new id, and return the error that names the id."""
    identifier = secrets.token_hex(4)
    sys.stderr.write(f"internal error {identifier}\n{traceback.format_exc()}")
    return Unforeseen(f"Internal error {identifier}.", hint="Standard error has the details under that id.")


def confirmed(question: str, yes: bool) -> None:
    """Ask before something is removed; raise InvalidInput where nobody can answer, or the answer is no."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput("This needs a confirmation, and nobody is there to ask.", hint="Add --yes.")
    if not typer.confirm(question, err=True):
        raise InvalidInput("Nothing was changed.")


def text_or_input(text: str) -> str:
    """Return the text, or standard input where the text is a single dash."""
    return sys.stdin.read() if text == "-" else text


def _settings(namespace: str, project: str) -> Settings:
    settings = load(namespace=namespace or None, project=project or None)
    logging.basicConfig(level=settings.log_level, stream=sys.stderr)
    return settings


async def _with_brain(settings: Settings, job: Callable[[Brain], Awaitable[Answer]]) -> Answer:
    brain = runtime.open_brain(settings, origin="human", client=CLIENT, project=runtime.named_project(settings))
    try:
        return await job(brain)
    finally:
        await brain.close()
