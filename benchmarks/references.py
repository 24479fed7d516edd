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
Words = Callable[[str], list[str]]
"""From a question to what is searched for."""


def fts5(texts: Sequence[str], tokenize: str = "porter unicode61", words_of: Words | None = None) -> Search:
    """Index texts with FTS5 and search for any of a question's words, ranked by its bm25."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{tokenize}')")
    connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
    query = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?"

    def search(question: str, most: int) -> list[int]:
        words = (words_of or question_words)(question)
        asked = " OR ".join(f'"{word}"' for word in words)
        return [row for (row,) in connection.execute(query, (asked, most))] if words else []

    return search


def missing(*packages: str) -> list[str]:
    """Return which of some packages are not installed."""
    return [package for package in packages if find_spec(package) is None]


def bm25s(texts: Sequence[str]) -> Search | None:
    """Index texts with bm25s and English stems; None where it is not installed."""
    if missing("bm25s"):
        return None
    import bm25s as library

    stemmer = Stemmer.Stemmer("english")
    stops = sorted(STOP_WORDS)

    def words_of(text: str) -> list[str]:
        options = {"stopwords": stops, "stemmer": stemmer, "show_progress": False, "return_ids": False}
        [words] = library.tokenize([text], **options)
        return list(words)

    return _bm25s(texts, words_of)


def jieba_bm25s(texts: Sequence[str]) -> Search | None:
    """Index Chinese texts with bm25s and the words that jieba finds in them; None where one is not installed."""
    if missing("bm25s", "jieba"):
        return None
    import jieba

    jieba.setLogLevel("WARNING")

    def words_of(text: str) -> list[str]:
        return [word for word in jieba.lcut_for_search(text.casefold()) if any(each.isalnum() for each in word)]

    return _bm25s(texts, words_of)


def _bm25s(texts: Sequence[str], words_of: Words) -> Search:
    import bm25s as library

    index = library.BM25()
    index.index([words_of(text) for text in texts], show_progress=False)

    def search(question: str, most: int) -> list[int]:
        words = [word for word in words_of(question) if word in index.vocab_dict]
        if not words:
            return []
        found, scores = index.retrieve([words], k=min(most, len(texts)), show_progress=False)
        return [int(place) for place, score in zip(found[0], scores[0], strict=True) if score > 0]

    return search


def trigrams(question: str) -> list[str]:
    """Return what a trigram index can look up of a question: every run of three characters, and shorter words whole."""
    words = question_words(question)
    return list(dict.fromkeys(word[start : start + 3] for word in words for start in range(max(1, len(word) - 2))))


def question_words(question: str) -> list[str]:
    """Return a question's words without stop words, unless nothing else is left."""
    words = re.findall(r"\w+", question.casefold().replace("'", "").replace("’", ""))
    kept = [word for word in words if word not in STOP_WORDS]
    return kept or words
