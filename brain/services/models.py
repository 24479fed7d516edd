"""One embedding model a namespace: spaces are never mixed."""

from __future__ import annotations

from dataclasses import dataclass

from brain.embedders import Embedder
from brain.embedders.floors import profile_of
from brain.errors import ConfigurationError
from brain.ranking import Profile
from brain.repository import models as repository
from brain.repository.search import EXACT_ROWS
from brain.text import ANALYSIS_VERSION
from brain.work import Work


async def check_active(work: Work, embedder: Embedder) -> None:
    """Settle the model at the first fact; raise ConfigurationError when another one, or another analysis, was used."""
    wanted = of(embedder)
    found = await repository.active(work)
    if found is None:
        await repository.register(work, wanted)
    else:
        _compare(found, wanted)


async def matches(work: Work, embedder: Embedder) -> None:
    """Raise ConfigurationError when this brain was indexed with another model or analysis."""
    found = await repository.active(work)
    if found is not None:
        _compare(found, of(embedder))


def of(embedder: Embedder) -> repository.Model:
    """Return what a provider writes beside its vectors."""
    return repository.Model(embedder.model, embedder.dimensions, ANALYSIS_VERSION)


def profile(embedder: Embedder) -> Profile:
    """Return how far a model's similarities are trusted where nothing was calibrated."""
    return profile_of(embedder.model).calibrated(embedder.floor)


MOST_INDEXED = 200_000
"""A server indexes up to so many vectors by itself, in some minutes at most; more are left to `brain reindex`."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """What a search has to know of the model before it begins."""

    profile: Profile
    """With the floor calibrated in this brain by the instant."""
    waiting: bool
    """Whether any text waits for its vector."""
    indexed: bool
    """Whether its vectors have an index that a search may walk."""


async def in_use(work: Work, embedder: Embedder) -> ModelState:
    """Return the state of the model in this brain.

    Raises ConfigurationError when this brain was indexed with another model or analysis.
    """
    found = await repository.in_use(work, embedder.model, ANALYSIS_VERSION)
    if found.model is not None:
        _compare(found.model, of(embedder))
    asked = profile(embedder)
    calibrated = asked if found.floor is None else asked.calibrated(found.floor)
    return ModelState(calibrated, found.waiting, found.indexed)


async def index_is_due(work: Work, embedder: Embedder) -> bool:
    """Whether the vectors of the model in use are too many to compare, yet few enough to index beside other work.

    A model that only sees words is asked about rows that share words, and needs no index.
    """
    found = await in_use(work, embedder)
    if found.indexed or found.profile.words_only:
        return False
    return EXACT_ROWS < await repository.vectors(work, embedder.model, most=MOST_INDEXED + 1) <= MOST_INDEXED


def _compare(found: repository.Model, wanted: repository.Model) -> None:
    if found != wanted:
        raise ConfigurationError(
            f"This brain was indexed with {found.model} (analysis {found.analysis}); this process uses {wanted.model}"
            f" (analysis {wanted.analysis}).",
            hint="Run: brain reindex",
        )
