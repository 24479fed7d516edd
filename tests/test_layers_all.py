"""What holds for every layer: the past stays readable, who wrote is stamped, and no text breaks storage."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from brain.errors import BrainError, InvalidInput
from brain.layers import LAYERS
from brain.repository import audit, versions
from brain.runtime import Brain
from brain.services import (
    amendments,
    claims,
    constraints,
    friction,
    history,
    memory,
    pins,
    records,
    scopes,
    search,
    session,
    threads,
    trail,
    wiki,
)
from tests import factories

Call = Callable[[Brain, str], Awaitable[Any]]

SURROGATE = "trip \ud83d"
NUL = "a\x00b"


async def rewrite(brain: Brain, layer: str, row: Any) -> Any:
    """Write a second version of a row of any layer."""
    again: dict[str, dict[str, Any]] = {
        "record": {"value": "1.00"},
        "pin": {"state": "Sent.", "expected_version": 1},
        "wiki": {"body": "New.", "expected_version": 1},
        "thread": {"note": "Asked.", "expected_version": 1},
        "memory": {"text": "New.", "key": getattr(row, "key", ""), "valid_from": getattr(row, "valid_from", None)},
    }
    if layer == "constraint":
        return (await brain.write(lambda work: constraints.retire(work, ref=row.id, said="drop it")))[0]
    if layer == "friction":
        human = factories.as_caller(brain, origin="human")
        return await human.write(lambda work: friction.triage(work, ref=row.id, status="fixed"))
    return await factories.WRITERS[layer](brain, **again[layer])


@pytest.mark.parametrize("layer", LAYERS)
async def test_every_layer_is_readable_as_of_any_instant(brain: Brain, layer: str) -> None:
    await factories.fact(brain, "Something else.")
    described = LAYERS[layer]
    first = await factories.WRITERS[layer](brain)
    second = await rewrite(brain, layer, first)
    assert (first.version, second.version, second.id) == (1, 2, first.id)
    assert second.known_from > first.known_from
    moment = timedelta(microseconds=1)
    for as_of, expected in (
        (first.known_from - moment, None),
        (first.known_from, 1),
        (second.known_from - moment, 1),
        (second.known_from, 2),
        (None, 2),
    ):
        row = await brain.read(lambda work: versions.get(work, described, first.id), as_of=as_of)
        assert (row.version if row else None) == expected
        listed = await brain.read(lambda work: versions.listing(work, described), as_of=as_of)
        assert [each.version for each in listed if each.id == first.id] == ([expected] if expected else [])


@pytest.mark.parametrize("layer", LAYERS)
async def test_history_tells_when_each_version_began_and_ended_as_it_was_known_then(brain: Brain, layer: str) -> None:
    first = await factories.WRITERS[layer](brain)
    second = await rewrite(brain, layer, first)
    ref = f"{layer}:{first.id}"

    async def ends(as_of: Any = None) -> list[tuple[int, Any]]:
        found = await brain.read(lambda work: history.of(work, ref, for_human=True), as_of=as_of)
        return [(each.row.version, each.known_to) for each in found.versions]

    assert await ends() == [(1, second.known_from), (2, None)]
    assert await ends(first.known_from) == [(1, None)]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("origin", ["model", "human", "import"])
async def test_every_write_is_stamped_with_who_and_what_wrote_it(brain: Brain, layer: str, origin: str) -> None:
    caller = factories.as_caller(brain, origin=origin, client="editor", session="s-9", model="m-1")
    row = await factories.WRITERS[layer](caller)
    stamped = "user" if (layer, origin) == ("constraint", "model") else origin
    assert (row.origin, row.client, row.session, row.model) == (stamped, "editor", "s-9", "m-1")


@pytest.mark.parametrize("service", [constraints.add, constraints.retire, pins.write, wiki.write, threads.touch,
                                     records.log, friction.log, friction.triage, amendments.amend, amendments.forget,
                                     amendments.restore, memory.Draft, amendments.Amendment])  # fmt: skip
def test_no_argument_of_a_write_names_its_origin(service: Any) -> None:
    assert not {"origin", "client", "session", "model", "known_from", "recorded_at"} & set(
        inspect.signature(service).parameters
    )


@pytest.mark.parametrize("layer", LAYERS)
async def test_every_write_is_in_the_audit_once(brain: Brain, layer: str) -> None:
    first = await factories.WRITERS[layer](brain)
    second = await rewrite(brain, layer, first)
    entries = await brain.read(lambda work: audit.writes(work, id=first.id))
    assert [(each.layer, each.version, each.known_from) for each in entries] == [
        (layer, 1, first.known_from), (layer, 2, second.known_from),
    ]  # fmt: skip


async def test_the_future_cannot_be_read(brain: Brain) -> None:
    await factories.fact(brain)
    with pytest.raises(InvalidInput, match="future") as caught:
        await brain.read(trail.walk, as_of="2199-01-01")
    assert caught.value.field == "as_of"


async def draft(brain: Brain, **given: Any) -> Any:
    return await factories.fact(brain, **({"text": "A fact."} | given))


FIELDS: dict[str, Call] = {
    "rule": factories.constraint,
    "said": lambda brain, text: factories.constraint(brain, said=text),
    "reason": lambda brain, text: factories.constraint(brain, reason=text),
    "scope": lambda brain, text: factories.pin(brain, scope=f"project:{text}"),
    "retire.ref": lambda brain, text: brain.write(lambda work: constraints.retire(work, ref=text, said="drop it")),
    "retire.ref full": lambda brain, text: brain.write(
        lambda work: constraints.retire(work, ref=f"constraint:{text}", said="drop it")
    ),
    "state": factories.pin,
    "next": lambda brain, text: factories.pin(brain, next_step=text),
    "blocked_on": lambda brain, text: factories.pin(brain, blocked_on=text),
    "cites": lambda brain, text: factories.pin(brain, cites=[f"memory:{text}"]),
    "cites wiki": lambda brain, text: factories.pin(brain, cites=[f"wiki:{text}"]),
    "page": factories.page,
    "body": lambda brain, text: factories.page(brain, body=text),
    "summary": lambda brain, text: factories.page(brain, summary=text),
    "read page": lambda brain, text: brain.read(lambda work: wiki.read(work, text)),
    "thread.key": factories.thread,
    "thread.title": lambda brain, text: factories.thread(brain, title=text),
    "thread.note": lambda brain, text: factories.thread(brain, note=text),
    "thread.said": lambda brain, text: factories.thread(brain, said=text),
    "thread.status": lambda brain, text: factories.thread(brain, status=text),
    "record.kind": lambda brain, text: factories.record(brain, kind=text),
    "record.title": factories.record,
    "record.date": lambda brain, text: factories.record(brain, date=text),
    "record.value": lambda brain, text: factories.record(brain, value=text),
    "record.unit": lambda brain, text: factories.record(brain, unit=text),
    "record.fields name": lambda brain, text: factories.record(brain, fields={text: "x"}),
    "record.fields value": lambda brain, text: factories.record(brain, fields={"x": text}),
    "record.source": lambda brain, text: factories.record(brain, source=text),
    "record.said": lambda brain, text: factories.record(brain, said=text),
    "read kind": lambda brain, text: brain.read(lambda work: records.read(work, kind=text)),
    "read title": lambda brain, text: brain.read(lambda work: records.read(work, title=text)),
    "text": lambda brain, text: draft(brain, text=text),
    "key": lambda brain, text: draft(brain, key=text),
    "title": lambda brain, text: draft(brain, title=text),
    "tags": lambda brain, text: draft(brain, tags=[text]),
    "kind": lambda brain, text: draft(brain, kind=text),
    "reference": lambda brain, text: draft(brain, reference=text),
    "memory.said": lambda brain, text: draft(brain, said=text),
    "evidence": lambda brain, text: draft(brain, evidence=[{"description": text}]),
    "evidence uri": lambda brain, text: draft(brain, evidence=[{"description": "x", "uri": text}]),
    "supersedes": lambda brain, text: draft(brain, supersedes=text),
    "confidence": lambda brain, text: draft(brain, confidence=text),
    "occurred": lambda brain, text: draft(brain, occurred=text),
    "forget.ref": lambda brain, text: brain.write(lambda work: amendments.forget(work, name=text, reason="x")),
    "forget.record": lambda brain, text: brain.write(
        lambda work: amendments.forget(work, name=f"record:{text}", reason="x")
    ),
    "restore.ref": lambda brain, text: brain.write(lambda work: amendments.restore(work, name=text)),
    "history.ref": lambda brain, text: brain.read(lambda work: history.of(work, text)),
    "history.ref pin": lambda brain, text: brain.read(lambda work: history.of(work, f"pin:{text}")),
    "weigh.ref": lambda brain, text: brain.read(lambda work: claims.weigh(work, claims=[(f"pin:{text}", "x")])),
    "weigh.value": lambda brain, text: brain.read(lambda work: claims.weigh(work, claims=[("pin:work", text)])),
    "weigh.recall": lambda brain, text: brain.read(lambda work: claims.weigh(work, claims=[], recall=text)),
    "happened": factories.friction,
    "expected": lambda brain, text: factories.friction(brain, expected=text),
    "artifact": lambda brain, text: factories.friction(brain, artifact=text + "x" * 20),
    "category": lambda brain, text: factories.friction(brain, category=text),
    "query": lambda brain, text: search.prepare(brain.embedder, search.Question(query=text)),
    "query tags": lambda brain, text: search.prepare(brain.embedder, search.Question(query="x", tags=[text])),
    "query cursor": lambda brain, text: brain.read(lambda work: trail.walk(work, cursor=text)),
    "trail scope": lambda brain, text: brain.read(lambda work: trail.walk(work, scope=text)),
    "trail entity": lambda brain, text: brain.read(lambda work: trail.walk(work, entity=text)),
    "trail since": lambda brain, text: brain.read(lambda work: trail.walk(work, since=text)),
    "session scope": lambda brain, text: brain.read(lambda work: session.start(work, scope=text)),
    "session since": lambda brain, text: brain.read(lambda work: session.start(work, since=text)),
    "scope add": lambda brain, text: brain.write(lambda work: scopes.add(work, f"lane:{text}")),
    "as_of": lambda brain, text: brain.read(trail.walk, as_of=text),
}


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["NUL", "surrogate"])
@pytest.mark.parametrize("field", FIELDS)
async def test_text_that_postgres_cannot_carry_is_refused_in_every_field(brain: Brain, field: str, text: str) -> None:
    with pytest.raises(BrainError) as caught:
        await FIELDS[field](brain, text)
    assert caught.value.field
    caught.value.message.encode()
    assert "\x00" not in caught.value.message
