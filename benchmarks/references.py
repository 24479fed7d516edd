"""Search systems to compare with, over the same texts: SQLite's FTS5, and bm25s where it is installed."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import Stemmer

from brain.text import STOP_WORDS

Search = Callable[[str, int], list[int]]
"""From a question and a number of hits to the positions of the best texts."""


def fts5(texts: Sequence[str], tokenize: str = "porter unicode61", *, stop_words: bool = True) -> Search:
    """Index texts with FTS5 and search for any of a question's words, ranked by its bm25."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{tokenize}')")
    connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
    query = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?"

    def search(question: str, most: int) -> list[int]:
        words = question_words(question, stop_words=stop_words)
        asked = " OR ".join(f'"{word}"' for word in words)
        return [row for (row,) in connection.execute(query, (asked, most))] if words else []

    return search


def bm25s(texts: Sequence[str]) -> Search | None:
    """Index texts with bm25s and English stems; None where it is not installed."""
    if find_spec("bm25s") is None:
        return None
    import bm25s as library

    stemmer = Stemmer.Stemmer("english")
    stops = sorted(STOP_WORDS)
    index = library.BM25()
    index.index(
        library.tokenize(list(texts), stopwords=stops, stemmer=stemmer, show_progress=False), show_progress=False
    )

    def search(question: str, most: int) -> list[int]:
        asked = library.tokenize([question], stopwords=stops, stemmer=stemmer, show_progress=False, return_ids=False)
        if not asked[0]:
            return []
        found, scores = index.retrieve(asked, k=min(most, len(texts)), show_progress=False)
        return [int(place) for place, score in zip(found[0], scores[0], strict=True) if score > 0]

    return search


def question_words(question: str, *, stop_words: bool = True) -> list[str]:
    """Return a question's words without stop words, unless nothing else is left."""
    words = re.findall(r"\w+", question.casefold().replace("'", "").replace("’", ""))
    kept = [word for word in words if not stop_words or word not in STOP_WORDS]
    return kept or words
