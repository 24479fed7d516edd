"""The LoCoMo conversations as they are published: turns with dates, questions with the turns that answer them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL: Final = CATEGORIES[5]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, with the id that evidence names."""

    id: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the ids of the turns that answer it."""

    conversation: str
    category: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with the questions about it."""

    name: str
    speakers: tuple[str, str]
    turns: list[Turn]
    asked: list[Asked]
    """Every question, also those without evidence."""

    @property
    def questions(self) -> list[Asked]:
        """The questions that have evidence."""
        return [each for each in self.asked if each.evidence]


def read(path: Path) -> list[Conversation]:
    """Read the published file. Raises ValueError or KeyError when it has another form."""
    return [_conversation(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def repaired(evidence: Iterable[str], known: Mapping[str, object] | frozenset[str]) -> frozenset[str]:
    """Return the turn ids that evidence means: some are joined, padded or have a colon too many, some name no turn."""
    found = re.findall(r"D:?(\d+):(\d+)", " ".join(evidence))
    meant = {f"D{int(session)}:{int(turn)}" for session, turn in found}
    return frozenset(meant & frozenset(known))


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    name, content = str(sample["sample_id"]), sample["conversation"]
    turns = [turn for number in _sessions(content) for turn in _turns(content, number)]
    known = frozenset(turn.id for turn in turns)
    asked = [
        Asked(name, CATEGORIES[each["category"]], str(each["question"]), repaired(each.get("evidence", ()), known))
        for each in sample["qa"]
    ]
    speakers = str(content["speaker_a"]), str(content["speaker_b"])
    return Conversation(name, speakers, turns, asked)


def _sessions(content: Mapping[str, Any]) -> list[int]:
    found = (re.fullmatch(r"session_(\d+)", key) for key in content)
    return sorted(int(match[1]) for match in found if match)


def _turns(content: Mapping[str, Any], number: int) -> list[Turn]:
    date = str(content[f"session_{number}_date_time"])
    said_at = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return [
        Turn(str(turn["dia_id"]), f"[{date}] {turn['speaker']}: {turn['text']}", said_at)
        for turn in content[f"session_{number}"]
    ]
