"""Rows that left the sight of the present, counted as they are written.

A search as of an instant reads two running counts, of what was written and of what was closed up to it. Rows that come
or go with the passage of time are kept apart, and looked at one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brain.errors import ConfigurationError
from brain.layers import Fact
from brain.repository import scopes
from brain.repository.visibility import Effect
from brain.work import Work, named_queries

_SQL = named_queries("closings")


async def note(
    work: Work, effects: Sequence[Effect], facts: Mapping[int, Fact], words: Callable[[Fact], Counter[str]]
) -> None:
    """Count what some assertions closed, in the order in which they were written.

    facts holds every row that an effect names; words gives the terms that a row was indexed by.
    """
    timed = sorted({doc for each in effects for doc in each.timed})
    if timed:
        rows = [facts[doc] for doc in timed]
        await work.run(
            _SQL["add_timed"],
            {"docs": timed, "scopes": [row.scope for row in rows], "lengths": [row.length for row in rows]},
        )
    gone = {doc: each.row.doc for each in reversed(effects) for doc in each.gone if not facts[doc].tombstone}
    if not gone:
        return
    counted = set(await work.values(_SQL["counted"], {"docs": list(gone)}))
    closed = sorted(
        ((closer, facts[doc]) for doc, closer in gone.items() if doc not in counted),
        key=lambda each: (each[0], each[1].doc),
    )
    for scope in sorted({fact.scope for _, fact in closed}):
        await _close(work, scope, [(closer, fact) for closer, fact in closed if fact.scope == scope], words)


async def mismatched(work: Work) -> list[int]:
    """Return the rows whose closing is not counted as the rectangles say."""
    return await work.values(_SQL["mismatched"], {})


async def _close(
    work: Work, scope: str, closed: Sequence[tuple[int, Fact]], words: Callable[[Fact], Counter[str]]
) -> None:
    number = (await scopes.known(work))[scope]
    found = await work.dicts(_SQL["closed_totals"], {"scope": scope})
    docs, length = (found[0]["docs"], found[0]["terms"]) if found else (0, 0)
    terms = {fact.doc: _indexed(fact, words) for _, fact in closed}
    distinct = sorted({term for each in terms.values() for term in each})
    totals = await work.dicts(_SQL["closed_term_totals"], {"terms": distinct, "number": number})
    before = Counter({row["term"]: row["docs"] for row in totals})
    rows: list[tuple[Any, ...]] = []
    postings: list[tuple[Any, ...]] = []
    for closer, fact in closed:
        rows.append((closer, fact.doc, fact.length, docs, length))
        docs, length = docs + 1, length + fact.length
        for term in terms[fact.doc]:
            postings.append((term, fact.doc, closer, before[term]))
            before[term] += 1
    await work.run(
        _SQL["add_closed"],
        {"scope": scope, **_columns(rows, "closers", "docs", "lengths", "docs_before", "terms_before")},
    )
    touched = await work.run(
        _SQL["close_postings"],
        {"number": number, **_columns(sorted(postings), "terms", "docs", "closers", "befores")},
    )
    if touched != len(postings):
        raise _other_analysis()


def _indexed(fact: Fact, words: Callable[[Fact], Counter[str]]) -> list[str]:
    """Return the terms that a row stands under. Others would leave it findable after it was closed."""
    found = words(fact)
    if found.total() != fact.length:
        raise _other_analysis()
    return sorted(found)


def _other_analysis() -> ConfigurationError:
    return ConfigurationError(
        "A fact of this brain was indexed by another text analysis than this program's.",
        hint="Use the program that wrote this brain.",
    )


def _columns(rows: Sequence[tuple[Any, ...]], *names: str) -> dict[str, list[Any]]:
    columns = zip(*rows, strict=True) if rows else iter([()] * len(names))
    return {name: list(column) for name, column in zip(names, columns, strict=True)}
