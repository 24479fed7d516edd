"""Prompts that a person picks in a client: session start, session close, correction. They read nothing themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import mcp_types as types

from brain.errors import InvalidInput
from brain.names import clean_text, excerpt
from brain.render import quoted
from brain.tools.protocol import Context
from brain.tools.schema import closest, listing


@dataclass(frozen=True, slots=True)
class _Argument:
    name: str
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class _Prompt:
    title: str
    description: str
    argument: _Argument
    text: Callable[[str], str]


def _start(scope: str) -> str:
    narrowed = f" Narrow it to the scope named here:\n{quoted(scope)}\n" if scope else " "
    return (
        f"Start this session from my brain. Call get_session_continuation.{narrowed}"
        "Keep to the hard rules for the whole session. Tell me in a few lines where we stand and what is next, ask me"
        " about each quiet thread without concluding anything from its silence, and then wait for me."
    )


def _close(scope: str) -> str:
    where = f"the scope named here:\n{quoted(scope)}\n" if scope else "each scope that we worked in.\n"
    return (
        f"Close this session in my brain. Set the pin of {where}"
        "Give its state, what is next, and what it is blocked on, with the version that you read. Rewrite the wiki"
        " pages that this session changed, as whole pages. Write the facts and decisions of the session with"
        " write_memory, one a write, each with a key and the date it occurred, and hard data with log_record. Touch the"
        " threads that we discussed; change a status only on my own words, quoted. Log with log_friction what failed"
        " you, with a verbatim artifact. Then list what you wrote, by ref."
    )


def _correct(what: str) -> str:
    return (
        f"Something in my brain is not right. In my words:\n{quoted(what)}\n"
        "Find every place that says it: read_memory, read_records, read_wiki, the pins of the session start, and"
        " get_history of what you find. Show me the refs with what they say. A fact that was always wrong: amend_memory"
        " with the reason. A fact that no longer holds: write the new one with supersedes, or forget_memory with the"
        " reason. Then bring the pins and pages that repeat it into line. A rule changes only on my own word; ask me"
        " for it."
    )


_SCOPE = _Argument("scope", "global, lane:<slug> or project:<slug>; empty for everything in view")
_PROMPTS: Final[Mapping[str, _Prompt]] = {
    "session_start": _Prompt("Start a session", "Pick up where the last session ended.", _SCOPE, _start),
    "session_close": _Prompt("Close a session", "Write down what the next session needs.", _SCOPE, _close),
    "correction": _Prompt(
        "Correct the brain",
        "Find and correct what the brain holds wrongly.",
        _Argument("what", "What is wrong, and what is right", required=True),
        _correct,
    ),
}


async def listed(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    """List the prompts."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=each.title,
                description=each.description,
                arguments=[
                    types.PromptArgument(
                        name=each.argument.name,
                        description=each.argument.description,
                        required=each.argument.required,
                    )
                ],
            )
            for name, each in _PROMPTS.items()
        ]
    )


async def get(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Return a prompt as one message of the user; raise InvalidInput for an unknown name or argument."""
    prompt = _PROMPTS.get(params.name)
    if prompt is None:
        near = closest(params.name, _PROMPTS)
        raise InvalidInput(
            f"There is no prompt '{excerpt(params.name, 40)}'.",
            hint=f"Did you mean {near}?" if near else f"There are {listing(_PROMPTS)}.",
        )
    given = dict(params.arguments or {})
    argument = prompt.argument
    value = given.pop(argument.name, "")
    if given:
        raise InvalidInput(f"{params.name} takes only the argument {argument.name}.")
    text = clean_text(value, field=argument.name, maximum=4_000, minimum=1 if argument.required else 0).strip()
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=prompt.text(text)))
    return types.GetPromptResult(description=prompt.description, messages=[message])
