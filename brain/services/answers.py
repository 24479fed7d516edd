"""A search's answer as every surface shows it, whole or within a budget of characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brain.render import counted, fact_text
from brain.services import facts, inputs, search
from brain.services.budget import Budget, Item

VIEWS = ("full", "compact")
_METADATA = frozenset(
    {"origin", "client", "session", "model", "trigger", "known_from", "recorded_at", "tombstone", "key", "supersedes",
     "reference", "importance", "said", "reason"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as text and as data."""

    text: str
    data: dict[str, Any]


def show(answer: search.Answer, *, view: str = "full", max_chars: int = 0) -> Shown:
    """Return an answer; compact drops metadata and keeps every qualifier, max_chars leaves whole hits out at the end.

    What was left out is counted, and the cursor goes on with it.
    """
    compact = inputs.choice(view or "full", VIEWS, field="view") == "compact"
    items = [_item(hit, compact) for hit in answer.hits]
    kept = Budget(max_chars).fit_first(items) if max_chars else items
    answer = search.cut(answer, len(kept))
    omitted = len(items) - len(kept)
    lines = [item.text for item in kept] or ([answer.message] if answer.message else [])
    if omitted:
        lines.append(f"Omitted for size: {counted(omitted, 'hit')}; raise max_chars or go on with the cursor.")
    if answer.cursor:
        lines.append(f"More: cursor {answer.cursor}")
    data: dict[str, Any] = {
        "hits": [item.data for item in kept],
        "reason": answer.reason,
        "diagnosis": answer.diagnosis,
    }
    more = {"message": answer.message, "omitted": omitted, "cursor": answer.cursor}
    return Shown("\n".join([*lines, _evidence(answer)]), data | {name: value for name, value in more.items() if value})


def _evidence(answer: search.Answer) -> str:
    """Return the absence certificate, or the same evidence beside hits: what was searched, how, and what fell short."""
    found = answer.diagnosis
    evidence = (
        f"Searched {counted(found['rows_searched'], 'row')} {'exactly' if found['exact'] else 'approximately'}"
        f" as of {found['as_of']}; reason {answer.reason}; words: {found['lexical']['status']},"
        f" {counted(found['lexical']['candidates'], 'candidate')}; vectors: {found['vector']['status']},"
        f" {counted(found['vector']['candidates'], 'candidate')}; below the floor: {found['below_floor']['candidates']}"
        f" (best {found['below_floor']['best_strength']:.2f} of the floor,"
        f" cosine {found['below_floor']['best_cosine']}, share of words {found['below_floor']['best_coverage']});"
        f" floor {found['floor']['evidence']}, by words alone {found['floor']['words']}; model {found['model']}."
    )
    if found["rows_without_vector"]:
        evidence += f" {counted(found['rows_without_vector'], 'row')} without a vector: only words find them."
    return evidence


def _item(hit: search.Hit, compact: bool) -> Item:
    row = inputs.shown(facts.LAYER, hit.fact)
    quality = {"match_quality": "relaxed"} if hit.relaxed else {}
    if compact:
        kept = {name: value for name, value in row.items() if name not in _METADATA and value not in ("", [], None)}
        return Item(fact_text(hit.fact), kept | quality)
    legs = {
        "score": hit.score,
        "strength": None if hit.relaxed else hit.strength,
        "lexical": _leg(hit.candidate.lexical),
        "vector": _leg(hit.candidate.vector),
        "coverage": hit.candidate.coverage,
    }
    judged = "relaxed match" if hit.relaxed else f"{hit.strength:.2f} of the floor"
    return Item(
        f"{fact_text(hit.fact)}\n  score {hit.score:.6f}, {judged}: {_legs(hit)}",
        row | legs | quality,
    )


def _leg(leg: Any) -> dict[str, Any] | None:
    return {"rank": leg.rank, "score": leg.score} if leg is not None else None


def _legs(hit: search.Hit) -> str:
    words, vector = hit.candidate.lexical, hit.candidate.vector
    said = "words none"
    if words:
        said = f"words rank {words.rank} (BM25 {words.score:.4f}, {hit.candidate.coverage:.0%} of the query)"
    return f"{said}, " + (f"vectors rank {vector.rank} (cosine {vector.score:.4f})" if vector else "vectors none")
