"""The search system to compare speed with: SQLite's FTS5 for the words, exact cosine in numpy, fused by rank."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from benchmarks.references import question_words
from benchmarks.vocabulary import Matrix
from brain.ranking import reciprocal_ranks

DEPTH = 100
BATCH = 10_000
_INSERT = "INSERT INTO facts (rowid, text) VALUES (?, ?)"
_WORDS = "SELECT rowid FROM facts WHERE facts MATCH ? ORDER BY rank, rowid LIMIT ?"


class SqliteSearch:
    """A file with an FTS5 table, and every vector in memory. No versions, no scopes, no floor."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection = sqlite3.connect(file)
        self._connection.execute("CREATE VIRTUAL TABLE facts USING fts5(text, tokenize='porter unicode61')")
        self._vectors: Matrix = np.zeros((0, 0), dtype=np.float32)

    def __enter__(self) -> SqliteSearch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def load(self, texts: Sequence[str], vectors: Matrix) -> float:
        """Store texts, committing as often as the product; return the seconds it took."""
        began = time.perf_counter()
        for start in range(0, len(texts), BATCH):
            with self._connection:
                self._connection.executemany(_INSERT, enumerate(texts[start : start + BATCH], start))
        seconds = time.perf_counter() - began
        self._vectors = vectors
        return seconds

    @property
    def bytes(self) -> int:
        """Size on disk, with the vectors as they are in memory."""
        return self._file.stat().st_size + self._vectors.nbytes

    def search(self, query: str, vector: Matrix, most: int) -> list[str]:
        """Return the best texts for any of the query's words, and for its vector."""
        found = self._connection.execute(_WORDS, (" OR ".join(f'"{each}"' for each in question_words(query)), DEPTH))
        words = [row for (row,) in found]
        scores = reciprocal_ranks([words, self._nearest(vector)])
        best = sorted(scores, key=lambda row: (-scores[row], row))[:most]
        texts = self._connection.execute(
            f"SELECT rowid, text FROM facts WHERE rowid IN ({','.join('?' * len(best))})", best
        )
        by_row = dict(texts.fetchall())
        return [by_row[row] for row in best]

    def _nearest(self, vector: Matrix) -> list[int]:
        cosines = self._vectors @ vector
        depth = min(DEPTH, len(cosines))
        top = np.argpartition(-cosines, depth - 1)[:depth]
        return [int(row) for row in top[np.lexsort((top, -cosines[top]))]]
