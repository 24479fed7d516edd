"""What happened: dated facts, one a write, append-only and idempotent by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from brain.embedders import Embedder, Vector
from brain.errors import BrainError, InvalidInput, Refused
from brain.layers import Fact
from brain.names import clean_key, clean_text
from brain.refs import new_id
from brain.repository import memory as repository
from brain.repository import versions
from brain.services import amendments, inputs, models, scopes
from brain.services.facts import (
    KINDS,
    LAYER,
    LONGEST_TEXT,
    TRIGGERS,
    append,
    checked_evidence,
    checked_importance,
    content_of,
    parse_confidence,
    searchable,
    words_of,
)
from brain.work import Work

NEAR = 0.96
"""Cosine similarity from which facts with the same words and numbers are reported as near duplicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One fact as a caller gives it; empty means left out."""

    text: str
    key: str = ""
    kind: str = "fact"
    title: str = ""
    scope: str = ""
    tags: Sequence[str] = ()
    importance: int = 3
    confidence: str | float | Decimal = "1"
    occurred: inputs.Instant = None
    valid_from: inputs.Instant = None
    valid_to: inputs.Instant = None
    evidence: Sequence[Mapping[str, str]] = ()
    supersedes: str = ""
    trigger: str = "autonomous"
    reference: str = ""
    said: str = ""
    expected_version: int = 0
    allow_duplicate: bool = False
    known_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked draft with its vector, made before any transaction."""

    draft: Draft
    vector: Vector | None
    pending: bool
    """The model could not be reached; the vector follows later."""
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Written:
    """A fact as it stands after a write, what the write did, and what looks very much like it."""

    fact: Fact
    outcome: str
    """`created`, `new_version`, `unchanged` or `deduplicated`."""
    near: tuple[Mapping[str, Any], ...] = ()
    pending: bool = False


async def prepare(embedder: Embedder, drafts: Sequence[Draft]) -> list[Prepared]:
    """Check drafts and embed their texts; no transaction may be open. A failing model never loses a fact."""
    checked = [_checked(draft) for draft in drafts]
    try:
        vectors = await embedder.embed([searchable(draft.title, draft.text) for draft in checked])
    except BrainError:
        return [Prepared(draft, None, True, embedder) for draft in checked]
    return [Prepared(draft, vector, False, embedder) for draft, vector in zip(checked, vectors, strict=True)]


async def write(work: Work, prepared: Prepared) -> Written:
    """Store one fact; see write_many."""
    [written] = await write_many(work, [prepared])
    return written


async def write_many(work: Work, prepared: Sequence[Prepared]) -> list[Written]:
    """Store facts in order and say of each what became of it.

    Same key and content: nothing changes. Same key, other content: a new version. Same content under another key of
    the scope: the existing fact is returned, unless the draft allows duplicates. Raises Conflict when a draft expects
    another version, Refused when a key belongs to another scope, and InvalidInput when a fact that is there already
    would become a successor.
    """
    await models.check_active(work, prepared[0].embedder)
    placed = await _placed(work, [each.draft for each in prepared])
    cleaned = [replace(each, draft=draft) for each, draft in zip(prepared, placed, strict=True)]
    await _store_vectors(work, cleaned)
    fresh = await _fresh(work, cleaned)
    stored = iter(await _add(work, [(each.draft, None) for each in fresh], new_keys=True) if fresh else [])
    chosen = set(map(id, fresh))
    written = [
        Written(next(stored), "created") if id(each) in chosen else await _write_known(work, each) for each in cleaned
    ]
    near = await _near(work, written, prepared[0].embedder.model)
    return [
        replace(result, near=tuple(near.get(result.fact.doc, ())), pending=each.pending)
        for each, result in zip(cleaned, written, strict=True)
    ]


def _checked(draft: Draft) -> Draft:
    """Return a draft with every field in its accepted form; raise InvalidInput naming the first that is not."""
    text = clean_text(draft.text, field="text", minimum=1, maximum=LONGEST_TEXT)
    if len(draft.evidence) > 5:
        raise InvalidInput("evidence takes at most 5 entries.", field="evidence")
    return replace(
        draft,
        text=text,
        key=clean_key(draft.key, field="key") if draft.key.strip() else "",
        kind=inputs.choice(draft.kind or "fact", KINDS, field="kind"),
        title=clean_text(draft.title, field="title", maximum=200),
        importance=checked_importance(draft.importance),
        tags=inputs.labels(draft.tags, field="tags"),
        confidence=parse_confidence(draft.confidence),
        evidence=[checked_evidence(each) for each in draft.evidence],
        trigger=inputs.choice(draft.trigger or "autonomous", TRIGGERS, field="trigger"),
        reference=clean_text(draft.reference, field="reference", maximum=500),
        said=clean_text(draft.said, field="said", maximum=2_000),
    )


async def _placed(work: Work, drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts with their scopes registered and their instants read in the brain's zone.

    A draft that names no scope belongs where its key is known already.
    """
    unplaced = [draft.key for draft in drafts if draft.key and not draft.scope.strip()]
    known = await repository.newest_by_key(work, unplaced) if unplaced else {}
    named = [
        known[draft.key].scope if draft.key in known and not draft.scope.strip() else draft.scope for draft in drafts
    ]
    scope = {name: await scopes.for_writing(work, name) for name in dict.fromkeys(named)}
    return [replace(_timed(work, draft), scope=scope[name]) for draft, name in zip(drafts, named, strict=True)]


def _timed(work: Work, draft: Draft) -> Draft:
    start = inputs.instant(work, draft.valid_from, field="valid_from")
    end = inputs.instant(work, draft.valid_to, field="valid_to")
    inputs.interval(start, end)
    return replace(
        draft, valid_from=start, valid_to=end, occurred=inputs.instant(work, draft.occurred, field="occurred")
    )


async def _store_vectors(work: Work, prepared: Sequence[Prepared]) -> None:
    """Store the vectors of texts that have none yet, and note the texts that the model could not be asked about."""
    model = prepared[0].embedder.model
    contents = {content_of(each.draft.title, each.draft.text): each for each in prepared}
    known = await repository.embedded(work, model, contents)
    new = {content: each for content, each in contents.items() if content not in known}
    await repository.add_embeddings(work, model, {key: each.vector for key, each in new.items() if not each.pending})
    if waiting := [content for content, each in new.items() if each.pending]:
        await repository.add_pending(work, model, waiting)


async def _fresh(work: Work, prepared: Sequence[Prepared]) -> list[Prepared]:
    """Return the facts whose key and content are new to the brain and come only once here: they go in together."""
    known = await repository.newest_by_key(work, [each.draft.key for each in prepared if each.draft.key])
    seen: set[object] = set(known)
    for scope in {each.draft.scope for each in prepared}:
        hashes = [content_of(each.draft.title, each.draft.text) for each in prepared if each.draft.scope == scope]
        seen |= {(scope, found) for found in await repository.same_content(work, scope, hashes)}
    fresh = []
    for each in prepared:
        content = (each.draft.scope, content_of(each.draft.title, each.draft.text))
        names = {each.draft.key or content, content}
        if not names & seen and not each.draft.supersedes and not each.draft.expected_version:
            fresh.append(each)
        seen |= names
    return fresh


async def _write_known(work: Work, prepared: Prepared) -> Written:
    """Store a fact whose key or content may already be there."""
    draft = prepared.draft
    current = (await repository.newest_by_key(work, [draft.key])).get(draft.key) if draft.key else None
    if current is None:
        inputs.check_version(None, draft.expected_version, layer=LAYER, required=False)
        twin = await _twin(work, draft)
        if twin is not None and not draft.allow_duplicate:
            await _check_no_succession(work, draft, twin)
            return Written(twin, "deduplicated")
        predecessor = await amendments.predecessor(work, draft.supersedes) if draft.supersedes else None
        [fact] = await _add(work, [(draft, None)], new_keys=True, supersedes=predecessor.id if predecessor else "")
        if predecessor is not None:
            await amendments.end_at_successor(work, predecessor, fact)
        return Written(fact, "created")
    if current.scope != draft.scope:
        raise Refused(f"key {draft.key} belongs to scope {current.scope}; scope and key do not change.", field="scope")
    if draft.supersedes and not await amendments.succeeds(work, current, draft.supersedes):
        raise InvalidInput(
            "supersedes needs a new key; the same key makes a new version by itself.", field="supersedes"
        )
    inputs.check_version(current, draft.expected_version, layer=LAYER, required=False)
    if _same(draft, current):
        return Written(current, "unchanged")
    [fact] = await _add(work, [(draft, current)], new_keys=False)
    return Written(fact, "new_version")


async def _twin(work: Work, draft: Draft) -> Fact | None:
    found = await repository.same_content(work, draft.scope, [content_of(draft.title, draft.text)])
    for twin in found.values():
        return await versions.get(work, LAYER, twin)
    return None


async def _check_no_succession(work: Work, draft: Draft, twin: Fact) -> None:
    """Refuse a succession by a fact that is there already, unless it is only repeated: it would be left out unsaid."""
    if draft.supersedes and not await amendments.succeeds(work, twin, draft.supersedes):
        raise InvalidInput(
            f"supersedes needs a new fact, and memory:{twin.id} says this already; set allow_duplicate to write it"
            " again as the successor, or forget the old fact.",
            field="supersedes",
        )


def _same(draft: Draft, current: Fact) -> bool:
    """Whether a draft says what the newest version says; what the draft leaves out does not count."""
    given = {
        "text": draft.text, "title": draft.title, "kind": draft.kind, "tags": list(draft.tags),
        "importance": draft.importance, "confidence": draft.confidence, "evidence": list(draft.evidence),
        "tombstone": False,
    }  # fmt: skip
    dated = {name: getattr(draft, name) for name in ("occurred", "valid_from", "valid_to")}
    given |= {name: value for name, value in dated.items() if value is not None}
    return all(getattr(current, name) == value for name, value in given.items())


async def _add(
    work: Work, drafts: Sequence[tuple[Draft, Fact | None]], *, new_keys: bool, supersedes: str = ""
) -> list[Fact]:
    return await append(work, [_fact(work, draft, old, supersedes) for draft, old in drafts], new_keys=new_keys)


def _fact(work: Work, draft: Draft, old: Fact | None, supersedes: str) -> Fact:
    """Return the assertion that a draft makes. Without a validity it holds from its event, at the latest from now.

    What was said before keeps the date of its event: writing an old fact again does not make it newer.
    """
    stamp = inputs.stamp(work, said=draft.said, known_at=draft.known_at)
    content = content_of(draft.title, draft.text)
    repeated = old.occurred if old is not None and old.content == content else None
    occurred: datetime = _read(draft.occurred) or repeated or stamp["known_from"]
    starts = _read(draft.valid_from) or min(occurred, stamp["known_from"])
    ends = _read(draft.valid_to)
    inputs.interval(starts, ends)
    identity = old.id if old else new_id(stamp["known_from"])
    return Fact(
        id=identity,
        version=(old.version if old else 0) + 1,
        doc=0,
        scope=draft.scope,
        key=old.key if old else draft.key or identity,
        text=draft.text,
        title=draft.title,
        kind=draft.kind,
        tags=list(draft.tags),
        importance=draft.importance,
        confidence=parse_confidence(draft.confidence),
        evidence=list(draft.evidence),
        supersedes=supersedes or (old.supersedes if old else ""),
        trigger=draft.trigger,
        reference=draft.reference,
        said=draft.said,
        reason="",
        tombstone=False,
        occurred=occurred,
        valid_from=starts,
        valid_to=ends,
        content=content,
        words=words_of(draft.title, draft.text, work.language),
        length=0,
        docs_before=0,
        terms_before=0,
        **stamp,
    )


def _read(value: inputs.Instant) -> datetime | None:
    """Return an instant of a placed draft, which holds no text any more."""
    return value if isinstance(value, datetime) else None


async def _near(work: Work, written: Sequence[Written], model: str) -> dict[int, list[Mapping[str, Any]]]:
    """Return, for each new assertion, the visible facts that look very much like it."""
    new = [each.fact.doc for each in written if each.outcome in ("created", "new_version")]
    near: dict[int, list[Mapping[str, Any]]] = {}
    for row in await repository.same_words(work, new, model):
        if row["similarity"] >= NEAR:
            twin = {"ref": f"{LAYER.name}:{row['id']}", "version": row["version"]}
            near.setdefault(row["doc"], []).append(twin | {"similarity": round(row["similarity"], 4)})
    return near
