"""The honesty floor measured on one brain: questions made of its facts, and others that should find nothing."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from brain import ranking
from brain.embedders import Embedder
from brain.errors import InvalidInput
from brain.layers import Fact
from brain.names import clean_text
from brain.repository import memory, scopes
from brain.repository import models as repository
from brain.repository import search as legs
from brain.services import models, retrieval
from brain.services.facts import searchable
from brain.services.scopes import for_reading
from brain.text import ANALYSIS_VERSION, query_terms
from brain.work import Work

Read = Callable[..., Awaitable[Any]]
T = TypeVar("T")

LEAST = 10
"""Fewer questions of either sort say nothing."""
MOST_HITS = 200
MOST_FOREIGN = 400
MOST_SCOPES = 20
MOST_WORDS = 60
"""So many words of a long fact are looked at."""
PLACES = 10
"""A true hit is a fact among so many first rows of its question, before any floor."""
KEPT = 0.95
NOTHING = 0.98
"""What a floor should reach: the share of true hits that it keeps, and of foreign questions that find nothing."""
SHOWN = tuple(step / 8 for step in range(2, 17))
"""The floors of the curve, as multiples of the default."""
_STEP = 0.01
_EDGES = ".,;:!?\"'()[]“”‘’…"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the scope it is asked in, and the fact that it was made of if that is to be found."""

    text: str
    scope: str
    doc: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one question found before any floor: the best evidence, and that of the row that is wanted."""

    best: float
    companion: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """A floor with how many true hits it keeps and how many foreign questions it answers."""

    floor: float
    kept: int
    answered: int


@dataclass(frozen=True, slots=True)
class Report:
    """The curve of a brain, its floor now, and the floor that was chosen."""

    model: str
    analysis: int
    default: float
    current: Point
    chosen: Point
    curve: list[Point]
    hits: int
    """Questions whose fact was found before any floor."""
    missed: int
    """Questions whose fact no floor would find."""
    foreigners: int
    reached: bool
    """Whether the chosen floor reaches both aims."""
    scopes: list[str]

    @property
    def calibration(self) -> repository.Calibration:
        """What is stored."""
        return repository.Calibration(
            self.chosen.floor, self.hits, self.chosen.kept, self.foreigners, self.chosen.answered
        )


@dataclass(frozen=True, slots=True)
class _Drawn:
    as_of: datetime
    model: models.ModelState
    scopes: list[str]
    own: list[Question]
    foreign: list[Question]


async def measure(
    read: Read,
    embedder: Embedder,
    *,
    scope: str = "",
    foreign: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Ask questions that should find a fact and questions that should find nothing, and choose a floor.

    A question that should find its fact is made of the rarest words of that fact. Without foreign ones, those made of
    facts of other scopes are asked. Raises InvalidInput where there are too few of either.
    """
    asked = [clean_text(each, field="negatives", minimum=1, maximum=2_000) for each in foreign]
    drawn: _Drawn = await read(lambda work: _draw(work, embedder, scope, asked))
    questions = [*drawn.own, *drawn.foreign]
    texts = list(dict.fromkeys(each.text for each in questions))
    embedded = await embedder.embed(texts, query=True)
    vectors = {text: memory.vector_text(each) if each else None for text, each in zip(texts, embedded, strict=True)}
    found: list[Evidence | None] = []
    for question in questions:
        job = _asking(question, vectors[question.text], embedder, drawn.model)
        found.append(await read(job, as_of=drawn.as_of))
        progress(len(found), len(questions))
    own, others = found[: len(drawn.own)], found[len(drawn.own) :]
    hits = [each for each in own if each is not None]
    foreigners = [each for each in others if each is not None]
    _check_enough(len(hits), len(foreigners))
    return _report(embedder, drawn, hits, foreigners, missed=len(own) - len(hits))


async def store(work: Work, report: Report) -> None:
    """Let the chosen floor hold from now on; what was asked before keeps its answer."""
    await repository.add_calibration(work, report.model, report.analysis, report.calibration)


def words_of_question(fact: Fact, rarity: Mapping[str, int], language: str) -> list[str]:
    """Return the four to six rarest content words of a fact in the order of its text, or none where it has fewer."""
    units = _units(searchable(fact.title, fact.text), language)
    wanted = 4 + fact.content.bytes[0] % 3
    if len(units) < 4:
        return []
    by_rarity = sorted(range(len(units)), key=lambda at: (min(rarity.get(term, 0) for term in units[at][1]), at))
    return [units[at][0] for at in sorted(by_rarity[:wanted])]


def _units(text: str, language: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the different content words of a text with their terms; of a text without spaces, its terms."""
    units: dict[tuple[str, ...], str] = {}
    for word in text.split():
        query = query_terms(word.strip(_EDGES), language)
        if query.terms and not query.only_stop_words:
            units.setdefault(query.terms, word.strip(_EDGES))
        if len(units) == MOST_WORDS:
            break
    if len(units) < 4 and any(len(terms) > 1 for terms in units):
        units = {(term,): term for term in query_terms(text, language).terms[:MOST_WORDS]}
    return [(word, terms) for terms, word in units.items()]


async def _draw(work: Work, embedder: Embedder, scope: str, foreign: Sequence[str]) -> _Drawn:
    model = await models.in_use(work, embedder)
    listed = sorted(await scopes.overview(work), key=lambda each: (-each["facts"], each["scope"]))
    chosen = [each["scope"] for each in listed if each["facts"]][:MOST_SCOPES]
    asked_in = list((await for_reading(work, scope)).numbers) if scope.strip() else chosen
    drawn = list(dict.fromkeys([*asked_in, *chosen]))
    share = max(2 * LEAST, MOST_HITS // max(1, len(asked_in)))
    facts = {each: await memory.sample(work, each, share) for each in drawn}
    made = {each: [(fact, await _question(work, fact)) for fact in facts[each]] for each in drawn}
    own = [[Question(text, each, fact.doc) for fact, text in made[each] if text] for each in asked_in]
    if foreign:
        others = [[Question(text, each) for text in foreign] for each in asked_in]
    else:
        others = [await _from_elsewhere(work, each, made) for each in asked_in]
    return _Drawn(work.as_of, model, asked_in, _dealt(own)[:MOST_HITS], _dealt(others)[:MOST_FOREIGN])


async def _from_elsewhere(work: Work, scope: str, made: Mapping[str, Sequence[tuple[Fact, str]]]) -> list[Question]:
    """Return the questions made of facts of other scopes, but for facts that this scope holds as well."""
    facts = _dealt([pairs for each, pairs in made.items() if each != scope])
    shared = await memory.same_content(work, scope, [fact.content for fact, _ in facts])
    return [Question(text, scope) for fact, text in facts if text and fact.content not in shared]


async def _question(work: Work, fact: Fact) -> str:
    units = _units(searchable(fact.title, fact.text), work.language)
    terms = sorted({term for _, each in units for term in each})
    if not terms:
        return ""
    visible = await _visible(work, fact.scope)
    weights = (await legs.lexical(work, visible, terms, floor=1.0, depth=1)).weights
    rarity = dict(zip(weights.terms, weights.frequencies, strict=True))
    return " ".join(words_of_question(fact, rarity, work.language))


async def _visible(work: Work, scope: str) -> legs.Visible:
    numbers = await scopes.known(work)
    return legs.Visible(scopes=[scope], numbers=[numbers[scope]], valid_at=work.as_of)


def _asking(
    question: Question, vector: str | None, embedder: Embedder, model: models.ModelState
) -> Callable[[Work], Awaitable[Evidence | None]]:
    """Return the job that asks a question; None where the wanted row is not among the first places."""

    async def job(work: Work) -> Evidence | None:
        profile = model.profile
        asked = retrieval.Asked(question.text, vector, embedder, profile, indexed=model.indexed)
        candidates = await retrieval.unfloored(work, await _visible(work, question.scope), asked)
        best = max((_stands_from(each, profile, 1.0) for each in candidates), default=0.0)
        if question.doc is None:
            return Evidence(best)
        wanted = [each for each in candidates[:PLACES] if each.doc == question.doc]
        return Evidence(best, _stands_from(wanted[0], profile, ranking.COMPANION)) if wanted else None

    return job


def _stands_from(candidate: ranking.Candidate, profile: ranking.Profile, share: float) -> float:
    """Return up to which floor a candidate reaches a share of it.

    Beside a model that knows meaning, a row without a vector stands on its words at every floor, or at none.
    """
    if profile.words_only or candidate.vector is not None:
        return ranking.evidence(candidate, profile) / share
    return math.inf if candidate.coverage >= profile.words * share else 0.0


def _report(
    embedder: Embedder, drawn: _Drawn, hits: Sequence[Evidence], foreigners: Sequence[Evidence], *, missed: int
) -> Report:
    default = models.profile(embedder).floor

    def point(floor: float) -> Point:
        kept = sum(each.best >= floor and each.companion >= floor for each in hits)
        return Point(floor, kept, sum(each.best >= floor for each in foreigners))

    steps = range(max(1, round(default * SHOWN[0] / _STEP)), round(default * SHOWN[-1] / _STEP) + 1)
    chosen, reached = choose([point(round(step * _STEP, 2)) for step in steps], len(hits), len(foreigners), default)
    return Report(
        embedder.model,
        ANALYSIS_VERSION,
        default,
        point(drawn.model.profile.floor),
        chosen,
        [point(round(default * share, 4)) for share in SHOWN],
        len(hits),
        missed,
        len(foreigners),
        reached,
        drawn.scopes,
    )


def choose(points: Sequence[Point], hits: int, foreigners: int, default: float) -> tuple[Point, bool]:
    """Return the floor nearest to the default that reaches both aims, and whether there is one.

    Otherwise the lowest floor at which enough foreign questions find nothing, or the highest of all.
    """
    silent = [each for each in points if each.answered <= (1 - NOTHING) * foreigners + 1e-9]
    good = [each for each in silent if each.kept >= KEPT * hits - 1e-9]
    if good:
        return min(good, key=lambda each: (abs(each.floor - default), each.floor)), True
    return (min(silent, key=lambda each: each.floor) if silent else max(points, key=lambda each: each.floor)), False


def _check_enough(hits: int, foreigners: int) -> None:
    if hits < LEAST or foreigners < LEAST:
        raise InvalidInput(
            f"Calibrating needs at least {LEAST} questions that find their fact and {LEAST} that should find nothing;"
            f" there are {hits} and {foreigners}.",
            hint="Facts of at least four words in two scopes give both; or name a file of questions: --negatives FILE.",
        )


def _dealt(lists: Sequence[Sequence[T]]) -> list[T]:
    """Deal from several lists in turn."""
    return [each[place] for place in range(max(map(len, lists), default=0)) for each in lists if place < len(each)]
