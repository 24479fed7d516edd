"""Facts in the database: the assertions with their rectangles, postings and vectors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from brain.embedders.base import Vector
from brain.layers import LAYERS, Fact
from brain.repository import closings, scopes, versions, visibility
from brain.work import LOOK_UPS, Work, named_queries

LAYER = LAYERS["memory"]
_SQL = {
    name: query.replace("{columns}", versions.select_columns(LAYER)) for name, query in named_queries("memory").items()
}
_MOST_TF = 32_767
_VECTOR_LENGTH = 4_000
"""With rounding at most 4 064 in 16 000 dimensions, so that no sum of products of two vectors reaches 2^24."""


async def newest_by_key(work: Work, keys: Iterable[str]) -> dict[str, Fact]:
    """Return the newest version of each key that was known by as_of, visible or not."""
    found = await work.all(Fact, _SQL["newest_by_key"], {"keys": list(keys)})
    return {fact.key: fact for fact in found}


async def same_content(work: Work, scope: str, contents: Iterable[UUID]) -> dict[UUID, str]:
    """Return the oldest visible fact's id for each content that a scope holds."""
    rows = await work.dicts(_SQL["same_content"], {"scope": scope, "contents": list(contents)})
    return {row["content"]: row["id"] for row in reversed(rows)}


async def same_words(work: Work, docs: Sequence[int], model: str) -> list[dict[str, Any]]:
    """Return other visible facts of the same scope, words and numbers for each of some, with their similarity."""
    return await work.dicts(_SQL["same_words"], {"docs": list(docs), "model": model}) if docs else []


async def successor(work: Work, id: str) -> str | None:  # noqa: A002
    """Return the id of the fact that superseded this one, if any."""
    found = await work.values(_SQL["successor"], {"id": id})
    return found[0] if found else None


async def add(
    work: Work, facts: Sequence[Fact], words: Callable[[Fact], Counter[str]], *, new_keys: bool
) -> list[Fact]:
    """Store assertions, searchable at once; return them with their document numbers and running totals.

    words gives the terms of a fact; a tombstone is found by none. new_keys promises that every fact has a key of its
    own that was never used.
    """
    docs = await versions.next_docs(work, LAYER, len(facts))
    terms = [Counter[str]() if fact.tombstone else words(fact) for fact in facts]
    stored = [replace(fact, doc=docs[place], length=terms[place].total()) for place, fact in enumerate(facts)]
    for scope in sorted({fact.scope for fact in facts}):
        places = [place for place, fact in enumerate(facts) if fact.scope == scope]
        await _number(work, stored, places)
        await _add_postings(work, scope, [(stored[place], terms[place]) for place in places])
    await versions.insert(work, LAYER, stored)
    effects = (
        await visibility.place_new(work, LAYER, stored)
        if new_keys
        else [await visibility.place(work, LAYER, fact) for fact in stored]
    )
    await _note(work, effects, stored, words)
    return stored


async def _note(
    work: Work, effects: Sequence[visibility.Effect], stored: Sequence[Fact], words: Callable[[Fact], Counter[str]]
) -> None:
    named = {doc for each in effects for doc in each.gone | each.timed}
    facts = {fact.doc: fact for fact in stored}
    facts |= await by_doc(work, sorted(named - facts.keys()))
    await closings.note(work, effects, facts, words)


async def _number(work: Work, facts: list[Fact], places: Sequence[int]) -> None:
    """Give facts of one scope the totals of what was written before them."""
    found = await work.dicts(_SQL["scope_totals"], {"scope": facts[places[0]].scope})
    total = found[0] if found else {"docs": 0, "terms": 0}
    for place in places:
        facts[place] = replace(facts[place], docs_before=total["docs"], terms_before=total["terms"])
        if not facts[place].tombstone:
            total = {"docs": total["docs"] + 1, "terms": total["terms"] + facts[place].length}


async def _add_postings(work: Work, scope: str, rows: Sequence[tuple[Fact, Counter[str]]]) -> None:
    number = (await scopes.known(work))[scope]
    distinct = sorted({term for _, counts in rows for term in counts})
    totals = await work.dicts(_SQL["term_totals"], {"terms": distinct, "number": number})
    before = Counter({row["term"]: row["docs"] for row in totals})
    postings: list[tuple[str, int, int, int, int]] = []
    for fact, counts in rows:
        for term, tf in counts.items():
            postings.append((term, fact.doc, min(tf, _MOST_TF), fact.length, before[term]))
            before[term] += 1
    postings.sort()
    terms, *columns = zip(*postings, strict=True) if postings else [()] * 5
    names = ("docs", "tfs", "lengths", "befores")
    await work.run(
        _SQL["add_postings"],
        {"number": number, "terms": list(terms), **{n: numbers(c) for n, c in zip(names, columns, strict=True)}},
    )


async def embedded(work: Work, model: str, contents: Iterable[UUID]) -> set[UUID]:
    """Return which contents already have their row of this model."""
    return set(await work.values(_SQL["embedded"], {"model": model, "contents": list(contents)}))


async def add_embeddings(work: Work, model: str, vectors: Mapping[UUID, Vector | None]) -> None:
    """Store vectors by content; None says that the model has no usable vector for that text."""
    if vectors:
        texts = [None if vector is None else vector_text(vector) for vector in vectors.values()]
        await work.run(_SQL["add_embeddings"], {"model": model, "contents": list(vectors), "vectors": texts})
        await work.run(_SQL["settle_pending"], {"model": model, "contents": list(vectors)})


async def add_pending(work: Work, model: str, contents: Iterable[UUID]) -> None:
    """Note texts that wait for their vector."""
    await work.run(_SQL["add_pending"], {"model": model, "contents": list(contents)})


def vector_text(vector: Vector) -> str:
    """Return a vector in pgvector's input form: whole numbers, of one length for all vectors.

    pgvector adds up in single precision, where whole numbers below 2^24 add up exactly in any order. So a cosine has
    the same bits in every plan and on every machine, and equal similarities are equal.
    """
    norm = math.sqrt(math.fsum(each * each for each in vector))
    scale = _VECTOR_LENGTH / norm if norm else 1.0
    return f"[{','.join([str(round(each * scale)) for each in vector])}]"


def numbers(values: Iterable[int]) -> str:
    """Return whole numbers in the database's input form of an array, which is quicker to write than the driver's."""
    return f"{{{','.join(map(str, values))}}}"


async def by_doc(work: Work, docs: Sequence[int]) -> dict[int, Fact]:
    """Return facts by document number."""
    if not docs:
        return {}
    return {fact.doc: fact for fact in await work.all(Fact, _SQL["by_doc"], {"docs": list(docs)}, under=LOOK_UPS)}


async def sample(work: Work, scope: str, limit: int) -> list[Fact]:
    """Return some visible facts of a scope, as if at random and the same ones every time."""
    return await work.all(Fact, _SQL["sample"], {"scope": scope, "limit": limit})


async def trail(
    work: Work,
    *,
    scopes: Sequence[str] | None,
    valid_at: datetime | None,
    tags: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    terms: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    descending: bool = False,
    after: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[Fact]:
    """Return visible facts by event time, oldest first unless descending, after a position when one is given."""
    params = {
        "scopes": list(scopes) if scopes is not None else None,
        "valid_at": valid_at or work.as_of,
        "tags": list(tags) if tags else None,
        "kinds": list(kinds) if kinds else None,
        "terms": list(terms) if terms else None,
        "since": since,
        "until": until,
        "descending": descending,
        "after_occurred": after[0] if after else None,
        "after_doc": after[1] if after else None,
        "limit": limit,
    }
    return await work.all(Fact, _SQL["trail"], params)
