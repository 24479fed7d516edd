"""A random working day on all seven layers, through the tools that assistants call and the commands of a human."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from brain.errors import BrainError
from brain.runtime import Brain
from brain.services import amendments, friction
from brain.times import format_instant
from brain.tools import catalogue
from brain.tools.protocol import AnyTool, Result

TOOLS: Final[Mapping[str, AnyTool]] = {tool.name: tool for tool in catalogue.ALL}
SCOPES: Final = ("global", "lane:work", "lane:personal", "lane:school", "project:kestrel", "project:heron")
KEYS: Final = 40
WORDS: Final = (
    *("export", "parquet", "invoice", "Marlow", "deadline", "ferry", "telescope", "orchard", "budget", "review"),
    *("database", "index", "latency", "backup", "release", "window", "candle", "rye", "starter", "hallway", "paint"),
    *("insurance", "passport", "dentist", "violin", "chess", "league", "garden", "compost", "bicycle", "gearbox"),
    *("lantern", "archive", "figure", "draft", "chapter", "tutor", "exam", "timetable", "rehearsal", "visa"),
)


async def ask(brain: Brain, tool: str, **arguments: Any) -> Result:
    """Call a tool as a client does, without the protocol in between."""
    return await TOOLS[tool].answer(brain, arguments)


class Workload:
    """Random writes over few keys, so that writers meet: most land, some are refused as they should be."""

    def __init__(self, brain: Brain, seed: int) -> None:
        self.brain = brain
        self.random = random.Random(seed)
        self.written = 0
        """New words enter with the writes, so that the statistics of the past are not those of later."""
        self._steps: dict[Callable[[], Awaitable[object]], int] = {
            self._remember: 30, self._supersede: 4, self._amend: 8, self._forget: 5, self._restore: 2,
            self._pin: 8, self._page: 8, self._thread: 10, self._record: 8, self._drop_record: 2,
            self._add_rule: 6, self._retire_rule: 4, self._fail: 3, self._triage: 2,
        }  # fmt: skip

    async def step(self) -> bool:
        """Do one thing; return whether the brain took it."""
        [chosen] = self.random.choices(list(self._steps), list(self._steps.values()))
        try:
            await chosen()
        except BrainError:
            return False
        self.written += 1
        return True

    def _text(self, least: int = 4, most: int = 14) -> str:
        words = self.random.choices(WORDS, k=self.random.randint(least, most))
        if self.random.random() < 0.3:
            words.append(f"word{self.random.randrange(1 + self.written)}")
        return " ".join(words)

    def _scope(self) -> str:
        return self.random.choice(SCOPES)

    def _key(self) -> str:
        return f"fact-{self.random.randrange(KEYS)}"

    def _said(self) -> str:
        return f"please note: {self._text(3, 5)}"

    def _instant(self, least: timedelta, most: timedelta) -> str:
        offset = least + self.random.random() * (most - least)
        return format_instant(datetime.now(UTC) + offset)

    def _validity(self) -> dict[str, str]:
        """Return no interval, or one that begins or ends in the past or within the next seconds."""
        bounds: dict[str, str] = {}
        if self.random.random() < 0.3:
            bounds["valid_from"] = self._instant(timedelta(days=-30), timedelta(seconds=2))
        if self.random.random() < 0.3:
            bounds["valid_to"] = self._instant(timedelta(seconds=1), timedelta(seconds=8))
        return bounds

    async def _remember(self) -> None:
        fact = {"importance": self.random.randint(1, 5), "confidence": self.random.choice([0.4, 0.75, 1.0])}
        given = fact | {"kind": self.random.choice(["fact", "event", "decision"]), "tags": [self.random.choice(WORDS)]}
        text = self._text()
        key = self._key() if self.random.random() < 0.7 else ""
        place = {} if key else {"scope": self._scope()}
        await ask(self.brain, "write_memory", text=text, key=key, **place, **given, **self._validity())

    async def _supersede(self) -> None:
        await ask(self.brain, "write_memory", text=self._text(), supersedes=self._key())

    async def _amend(self) -> None:
        key = self._key()
        found = await ask(self.brain, "get_memory", ref=key)
        change: dict[str, Any] = {"text": self._text()} if self.random.random() < 0.6 else {"importance": 5}
        await ask(
            self.brain,
            "amend_memory",
            ref=key,
            expected_version=found.data["memory"]["version"],
            reason="it was wrong",
            **change,
            **self._validity(),
        )

    async def _forget(self) -> None:
        await ask(self.brain, "forget_memory", ref=self._key(), reason="no longer so", **self._validity())

    async def _restore(self) -> None:
        key = self._key()
        await self.brain.write(lambda work: amendments.restore(work, name=key, reason="forgotten by mistake"))

    async def _pin(self) -> None:
        await ask(self.brain, "set_pin", scope=self._scope(), state=self._text(), next=self._text(2, 5))

    async def _page(self) -> None:
        number = self.random.randrange(12)
        place = {"scope": SCOPES[number % len(SCOPES)]}
        body = f"# Subject {number}\n\n{self._text(10, 40)}"
        core = number < 3 and self.random.random() < 0.9
        await ask(self.brain, "write_wiki", page=f"Subject {number}", body=body, core=core, **place)

    async def _thread(self) -> None:
        number = self.random.randrange(15)
        change = {"status": self.random.choice(["open", "waiting", "paused", "done"]), "said": self._said()}
        await ask(
            self.brain,
            "touch_thread",
            key=f"loop-{number}",
            title=f"Loop {number}",
            note=self._text(2, 8),
            scope=SCOPES[number % len(SCOPES)],
            **(change if self.random.random() < 0.5 else {}),
        )

    async def _record(self) -> None:
        number = self.random.randrange(20)
        value = f"{self.random.randrange(100_000) / 100:.2f}"
        place = {"scope": SCOPES[number % len(SCOPES)], "title": f"Invoice {number}", "date": "2026-02-01"}
        await ask(self.brain, "log_record", kind="invoice", value=value, unit="EUR", **place, **self._validity())

    async def _drop_record(self) -> None:
        listed = await ask(self.brain, "read_records", scope="all", limit=20)
        if listed.data["records"]:
            ref = self.random.choice(listed.data["records"])["ref"]
            await ask(self.brain, "forget_memory", ref=ref, reason="entered twice")

    async def _add_rule(self) -> None:
        rule = f"Never {self._text(3, 6)}."
        await ask(self.brain, "set_constraint", rule=rule, said=self._said(), scope=self._scope())

    async def _retire_rule(self) -> None:
        start = await ask(self.brain, "get_session_continuation", max_chars=500_000)
        if len(start.data["rules"]) > 5:
            ref = self.random.choice(start.data["rules"])["ref"]
            await ask(self.brain, "retire_constraint", ref=ref, said=self._said(), reason="no longer wanted")

    async def _fail(self) -> None:
        artifact = f"Traceback: KeyError '{self._text(2, 4)}' in line 3 of totals.py"
        given = {"happened": "The totals were wrong.", "expected": "Totals with tax."}
        await ask(self.brain, "log_friction", artifact=artifact, **given)

    async def _triage(self) -> None:
        waiting = await self.brain.read(lambda work: friction.listing(work, statuses=("new",)))
        if waiting:
            ref = f"friction:{self.random.choice(waiting).id}"
            await self.brain.write(lambda work: friction.triage(work, ref=ref, status="triaged"))
