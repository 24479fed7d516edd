"""A seeded synthetic history: facts that are revised, corrected for a period, deleted and imported late.

Everything is invented. Words have a Zipf distribution, and a fact draws some of them from a topic of its own, so that
statistics move as facts come and go.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2024, 1, 1, tzinfo=UTC)
MONTH: Final = timedelta(days=30)
END: Final = START + 22 * MONTH
LATE_SHARE: Final = 0.04
"""Share of the revisions that one import records long after they were known."""
SCOPES: Final = ("global", "lane:work", "lane:personal", "project:kestrel")
KINDS: Final = ("fact", "preference", "event", "decision", "lesson", "profile", "note")

_WORDS, _TOPICS, _TOPIC_SIZE = 2_000, 60, 12
_LATE_FROM, _LATE_UNTIL, _LATE_AT = START + 10 * MONTH, START + 14 * MONTH, START + 15 * MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One assertion about a key: what it says, when it holds, when it was known and when it was recorded."""

    key: str
    scope: str
    text: str
    kind: str
    importance: int
    confidence: str
    occurred: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: datetime
    recorded_at: datetime
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as of a cut-off, about that instant or an earlier one, in one scope or everywhere."""

    text: str
    scope: str
    as_of: datetime
    valid_at: datetime


class Author:
    """Writes one history; the same seed gives the same history."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = _vocabulary(random.Random("words"), _WORDS)
        self._weights = [1 / (rank + 5) for rank in range(_WORDS)]
        self._topics = [self._random.sample(self._words[40:], _TOPIC_SIZE) for _ in range(_TOPICS)]

    def history(self, keys: int, revisions: int) -> list[Revision]:
        """Return so many revisions of so many keys in the order in which they are recorded."""
        counts = [1] * keys
        for _ in range(revisions - keys):
            counts[self._random.randrange(keys)] += 1
        written = [revision for number, count in enumerate(counts) for revision in self._life(number, count)]
        return _recorded(sorted(written, key=lambda each: each.known_from), int(revisions * LATE_SHARE))

    def questions(self, history: list[Revision], count: int) -> Iterator[Asked]:
        """Return questions in words of the history at random cut-offs, one in seven about an earlier period."""
        for number in range(count):
            as_of = self._between(START + MONTH, END)
            back = timedelta(days=self._random.uniform(5, 300)) if number % 7 == 0 else timedelta(0)
            about = self._about(history, as_of)
            words = about.text.split()
            asked = self._random.sample(words, min(len(words), self._random.randint(2, 5)))
            scope = about.scope if number % 2 else "all"
            yield Asked(" ".join(asked), scope, as_of, as_of - back)

    def _about(self, history: list[Revision], as_of: datetime) -> Revision:
        """Return a revision to ask about: in most cases one that was known, else any, perhaps of the future."""
        about = self._random.choice(history)
        while about.known_from > as_of and self._random.random() < 0.75:
            about = self._random.choice(history)
        return about

    def _life(self, number: int, count: int) -> list[Revision]:
        """Return the revisions of one key in the order in which they were known."""
        first = self._first(number)
        life = [first]
        for known_from in sorted(self._between(first.known_from, END) for _ in range(count - 1)):
            tie = self._random.random() < 0.02
            life.append(self._revised(first, life[-1], life[-1].known_from if tie else known_from))
        return life

    def _first(self, number: int) -> Revision:
        known_from = self._between(START, START + 18 * MONTH)
        occurred = known_from - timedelta(days=self._random.expovariate(1 / 20))
        return Revision(
            key=f"fact {number}",
            scope=self._random.choice(SCOPES),
            text=self._text(self._random.choice(self._topics)),
            kind=self._random.choice(KINDS),
            importance=self._random.randint(1, 5),
            confidence=f"{self._random.randint(40, 100) / 100:.2f}",
            occurred=occurred,
            valid_from=occurred,
            valid_to=None,
            known_from=known_from,
            recorded_at=known_from,
        )

    def _revised(self, first: Revision, before: Revision, known_from: datetime) -> Revision:
        """Return what is known next: a later state, or a correction or deletion, for a period or for good."""
        days = timedelta(days=1)
        chance = self._random.random()
        starts: datetime | None = known_from - self._random.uniform(0, 10) * days
        ends: datetime | None = None
        if chance < 0.25 or 0.84 <= chance < 0.92:
            starts = first.occurred + self._random.random() * (known_from - first.occurred)
            ends = starts + self._random.uniform(5, 90) * days
        elif chance < 0.32:
            starts = known_from + self._random.uniform(1, 60) * days
        elif chance >= 0.96:
            starts = None
        return replace(
            before,
            text=before.text if chance >= 0.84 else self._reworded(before.text),
            importance=self._random.randint(1, 5),
            valid_from=starts,
            valid_to=ends,
            known_from=known_from,
            recorded_at=known_from,
            tombstone=chance >= 0.84,
        )

    def _text(self, topic: list[str]) -> str:
        own = self._random.choices(topic, k=self._random.randint(3, 7))
        common = self._random.choices(self._words, self._weights, k=self._random.randint(4, 18))
        words = own + common
        self._random.shuffle(words)
        return " ".join(words)

    def _reworded(self, text: str) -> str:
        """Keep about two thirds of a text, or write another one."""
        fresh = self._text(self._random.choice(self._topics)).split()
        if self._random.random() < 0.2:
            return " ".join(fresh)
        kept = [word for word in text.split() if self._random.random() < 0.7]
        return " ".join(kept + fresh[: max(3, len(fresh) // 3)])

    def _between(self, start: datetime, end: datetime) -> datetime:
        return start + timedelta(
            microseconds=self._random.randrange(max(1, (end - start) // timedelta(microseconds=1)))
        )


def _recorded(known: list[Revision], late: int) -> list[Revision]:
    """Return revisions in the order of their recording, each at an instant of its own; one import records some late."""
    candidates = [each for each in known if _LATE_FROM <= each.known_from < _LATE_UNTIL]
    chosen = {id(each) for each in candidates[:: max(1, len(candidates) // max(1, late))][:late]}
    placed = [replace(each, recorded_at=_LATE_AT) if id(each) in chosen else each for each in known]
    placed.sort(key=lambda each: each.recorded_at)
    last = START
    for place, each in enumerate(placed):
        last = max(each.recorded_at, last + timedelta(microseconds=1))
        placed[place] = replace(each, recorded_at=last)
    return placed


def _vocabulary(chance: random.Random, count: int) -> list[str]:
    """Return distinct invented words of two to four syllables."""
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = (chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(chance.randint(2, 4)))
        words["".join(syllables) + chance.choice("klmnrt")] = None
    return list(words)
