"""write_memory, amend_memory, forget_memory."""

from __future__ import annotations

from pydantic import Field

from brain.errors import BrainError
from brain.render import counted
from brain.services import amendments, facts, memory
from brain.services.amendments import Amendment
from brain.tools.common import Arguments, Brain, Expected, Labels, Result, Said, Scope, write_result
from brain.tools.protocol import AnyTool, Tool

_KINDS = ", ".join(facts.KINDS)
_IMPORTANCE = "1 to 5"


class Evidence(Arguments):
    """What a fact rests on."""

    description: str = Field(description="What it is")
    uri: str = Field(default="", description="Where it is")


class WriteMemory(Arguments):
    """One fact."""

    text: str = Field(description="One fact, complete in itself")
    key: str = Field(
        default="", description="Stable name: writing it again is safe, and other content is a new version"
    )
    kind: str = Field(default="fact", description=_KINDS)
    title: str = Field(default="", description="Short title")
    scope: Scope = ""
    tags: Labels = []
    importance: int = Field(default=3, ge=1, le=5, description=_IMPORTANCE)
    confidence: float = Field(default=1.0, ge=0, le=1, description="0 to 1")
    occurred: str = Field(default="", description="When it happened: YYYY-MM-DD or RFC 3339; default now")
    valid_from: str = Field(default="", description="Holds from; default its occurrence, at the latest now")
    valid_to: str = Field(default="", description="Holds until, exclusive; default open")
    evidence: list[Evidence] = Field(default=[], max_length=5, description="Up to 5")
    supersedes: str = Field(default="", description="memory:<id> of the fact that this one replaces from its start on")
    trigger: str = Field(default="autonomous", description="explicit when the user asked to remember, else autonomous")
    reference: str = Field(default="", description="Where it comes from")
    said: Said = ""
    expected_version: Expected = 0
    allow_duplicate: bool = Field(default=False, description="Store although the scope already holds this text")


async def write_memory(brain: Brain, given: WriteMemory) -> Result:
    """Store a fact."""
    draft = memory.Draft(
        **{**given.model_dump(), "evidence": [each.model_dump() for each in given.evidence]},
    )
    [prepared] = await memory.prepare(brain.embedder, [draft])
    written = await brain.write(lambda work: memory.write(work, prepared))
    more: dict[str, object] = {"deduplicated": written.outcome == "deduplicated"}
    sentence = ""
    if written.outcome == "deduplicated":
        sentence = (
            f"Not stored again: memory:{written.fact.id}@{written.fact.version} already holds this text in"
            f" {written.fact.scope}. Set allow_duplicate to store it anyway."
        )
    result = write_result(facts.LAYER, written.fact, written.outcome, sentence, **more)
    return _noted(result, written)


def _noted(result: Result, written: memory.Written) -> Result:
    """Add what the writer should know: near duplicates, and a vector that is still to come."""
    text, data = result.text, dict(result.data)
    if written.near:
        text += (
            f" {counted(len(written.near), 'near duplicate')}: {', '.join(str(each['ref']) for each in written.near)}."
        )
        data["near_duplicates"] = [dict(each) for each in written.near]
    if written.pending:
        text += " The embedding model cannot be reached: until its vector is made, only words find this fact."
        data["vector"] = "pending"
    return Result(text, data)


class AmendMemory(Arguments):
    """A correction."""

    ref: str = Field(description="memory:<id>, or the key")
    expected_version: int = Field(ge=1, description="Version that you read")
    reason: str = Field(description="Why")
    text: str = Field(default="", description="Corrected text")
    title: str | None = Field(default=None, description="Corrected title")
    kind: str = Field(default="", description=_KINDS)
    tags: list[str] | None = Field(default=None, description="All labels")
    importance: int | None = Field(default=None, ge=1, le=5, description=_IMPORTANCE)
    confidence: float | None = Field(default=None, ge=0, le=1, description="0 to 1")
    occurred: str = Field(default="", description="When it happened")
    valid_from: str = Field(default="", description="Correct only from here")
    valid_to: str = Field(default="", description="Correct only until here, exclusive")
    reference: str = Field(default="", description="Where the correction comes from")


async def amend_memory(brain: Brain, given: AmendMemory) -> Result:
    """Correct a fact."""
    change = Amendment(
        text=given.text or None,
        title=given.title,
        kind=given.kind or None,
        tags=given.tags,
        importance=given.importance,
        confidence=given.confidence,
        occurred=given.occurred,
        valid_from=given.valid_from,
        valid_to=given.valid_to,
        reference=given.reference or None,
    )
    text = await brain.read(lambda work: amendments.text_after(work, given.ref, change))
    pending, vector = False, None
    try:
        [vector] = await brain.embedder.embed([text])
    except BrainError:
        pending = True
    row = await brain.write(
        lambda work: amendments.amend(
            work,
            name=given.ref,
            change=change,
            expected_version=given.expected_version,
            reason=given.reason,
            vector=vector,
            pending=pending,
            embedder=brain.embedder,
        )
    )
    changed = row.version > given.expected_version
    return write_result(facts.LAYER, row, "amended" if changed else "unchanged")


class ForgetMemory(Arguments):
    """What to forget."""

    ref: str = Field(description="memory:<id>, or the key")
    reason: str = Field(description="Why")
    valid_from: str = Field(default="", description="Forget only from here")
    valid_to: str = Field(default="", description="Forget only until here, exclusive")
    said: Said = ""


async def forget_memory(brain: Brain, given: ForgetMemory) -> Result:
    """Forget a fact."""
    row, changed = await brain.write(
        lambda work: amendments.forget(
            work,
            name=given.ref,
            reason=given.reason,
            valid_from=given.valid_from,
            valid_to=given.valid_to,
            said=given.said,
        )
    )
    ref = f"memory:{row.id}"
    text = (
        f"Forgot {ref}; earlier instants still see it." if changed else f"Nothing changed: {ref} was forgotten before."
    )
    return Result(text, {"outcome": "forgotten" if changed else "unchanged", "ref": ref, "version": row.version})


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "write_memory",
        "Write a memory",
        "Store one dated fact, decision or preference. Append-only and idempotent by key; the same text again returns"
        " the fact that is already there.",
        WriteMemory,
        write_memory,
        reads_only=False,
        idempotent=True,
    ),
    Tool(
        "amend_memory",
        "Amend a memory",
        "Correct a fact under the version that you read, over its whole validity or the interval given. The old version"
        " stays in history.",
        AmendMemory,
        amend_memory,
        reads_only=False,
        destructive=True,
    ),
    Tool(
        "forget_memory",
        "Forget a memory",
        "Hide a fact for good, or for a period, with the reason. Earlier instants still see it; a human can undo it.",
        ForgetMemory,
        forget_memory,
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
)
