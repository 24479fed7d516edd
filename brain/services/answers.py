"""A search's answer as every surface shows it."""

from __future__ import annotations

from typing import Any

from brain.render import counted, fact_text
from brain.services import facts, inputs, search


def text(answer: search.Answer) -> str:
    """Return hits as list entries with what each leg said, or the sentence for nothing with its evidence."""
    found = answer.diagnosis
    evidence = (
        f"Searched {counted(found['rows_searched'], 'row')} {'exactly' if found['exact'] else 'approximately'}"
        f" as of {found['as_of']}; reason {answer.reason}; words: {found['lexical']['status']},"
        f" {counted(found['lexical']['candidates'], 'candidate')}; vectors: {found['vector']['status']},"
        f" {counted(found['vector']['candidates'], 'candidate')}; below the floor: {found['below_floor']['candidates']}"
        f" (best cosine {found['below_floor']['best_cosine']},"
        f" best share of words {found['below_floor']['best_coverage']});"
        f" floor {found['floor']['cosine']} or {found['floor']['coverage']}; model {found['model']}."
    )
    if found["rows_without_vector"]:
        evidence += f" {counted(found['rows_without_vector'], 'row')} without a vector: only words find them."
    blocks = [f"{fact_text(hit.fact)}\n  score {hit.score:.6f}: {_legs(hit)}" for hit in answer.hits]
    more = [f"More: cursor {answer.cursor}"] if answer.cursor else []
    return "\n".join([*([answer.message] if answer.message else blocks), *more, evidence])


def shown(answer: search.Answer) -> dict[str, Any]:
    """Return hits and diagnosis as data."""
    hits = [
        inputs.shown(facts.LAYER, hit.fact)
        | {
            "score": hit.score,
            "lexical": _leg(hit.candidate.lexical),
            "vector": _leg(hit.candidate.vector),
            "coverage": hit.candidate.coverage,
        }
        for hit in answer.hits
    ]
    data: dict[str, Any] = {"hits": hits, "reason": answer.reason, "diagnosis": answer.diagnosis}
    if answer.message:
        data["message"] = answer.message
    return data | ({"cursor": answer.cursor} if answer.cursor else {})


def _leg(leg: Any) -> dict[str, Any] | None:
    return {"rank": leg.rank, "score": leg.score} if leg is not None else None


def _legs(hit: search.Hit) -> str:
    words, vector = hit.candidate.lexical, hit.candidate.vector
    parts = [
        f"words rank {words.rank} (BM25 {words.score:.4f}, {hit.candidate.coverage:.0%} of the query)"
        if words
        else "words none",
        f"vectors rank {vector.rank} (cosine {vector.score:.4f})" if vector else "vectors none",
    ]
    return ", ".join(parts)
