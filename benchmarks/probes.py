"""The BEAM chats as they are published: messages in order, probing questions with the messages that answer them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_MARK = re.compile(r"\s*->->.*$")
_START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat, with the id that evidence names."""

    id: str
    text: str
    sent_at: datetime
    """The day of the last time anchor; a second later than the message before."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question with the ids of the messages that answer it; of an update also which are stale and which are new."""

    ability: str
    text: str
    evidence: frozenset[str]
    stale: frozenset[str]
    updated: frozenset[str]


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with its probing questions that have evidence."""

    name: str
    messages: list[Message]
    probes: list[Probe]


def read(folder: Path) -> list[Chat]:
    """Read `N.chat.json.gz` and `N.probing_questions.json.gz`. Raises ValueError or KeyError for another form."""
    names = sorted((path.name.partition(".")[0] for path in folder.glob("*.chat.json.gz")), key=int)
    return [_chat(folder, name) for name in names]


def _chat(folder: Path, name: str) -> Chat:
    messages = list(_messages(_json(folder / f"{name}.chat.json.gz")))
    known = frozenset(each.id for each in messages)
    asked = _json(folder / f"{name}.probing_questions.json.gz")
    probes = [_probe(ability, each, known) for ability, listed in asked.items() for each in listed]
    return Chat(name, messages, [each for each in probes if each.evidence])


def _json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def _messages(batches: Any) -> Iterator[Message]:
    sent_at = _START
    for message in (message for batch in batches for turn in batch["turns"] for message in turn):
        sent_at = max(sent_at + timedelta(seconds=1), _anchored(message))
        yield Message(str(message["id"]), _MARK.sub("", message["content"]), sent_at)


def _anchored(message: Mapping[str, Any]) -> datetime:
    anchor = message.get("time_anchor")
    return datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC) if anchor else _START


def _probe(ability: str, asked: Mapping[str, Any], known: frozenset[str]) -> Probe:
    sources = asked.get("source_chat_ids") or ()
    parts = sources if isinstance(sources, Mapping) else {}
    return Probe(
        ability.replace("_", " "),
        str(asked["question"]),
        frozenset(_ids(sources)) & known,
        frozenset(_ids(parts.get("original_info", ()))) & known,
        frozenset(_ids(parts.get("updated_info", ()))) & known,
    )


def _ids(sources: Any) -> Iterator[str]:
    """Yield every id in lists and mappings of any depth."""
    if isinstance(sources, Mapping):
        sources = list(sources.values())
    if isinstance(sources, list | tuple):
        for each in sources:
            yield from _ids(each)
    else:
        yield str(sources)
