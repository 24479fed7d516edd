"""System time when the machine's clock steps back an hour: a real step, under libfaketime, of a running Postgres."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks import replay
from brain import cluster, embedded
from brain.layers import LAYERS
from brain.repository import visibility
from brain.runtime import Brain
from brain.services import history
from tests import factories

LIBRARY = next((folder / "faketime/libfaketime.so.1" for folder in Path("/usr/lib").glob("*-linux-gnu")
                if (folder / "faketime/libfaketime.so.1").exists()), None)  # fmt: skip
HOUR = timedelta(hours=1)
NO_TIMER: dict[str, str] = {"deadlock_timeout": "30min", "authentication_timeout": "10min"}
"""Postgres ends what runs too long by a signal, and libfaketime answers with the real time inside a signal handler: an
hour later. So nothing is timed that a slow machine could reach."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed (Debian: apt-get install faketime)"),
]

Step = Callable[[str], None]


@pytest.fixture(scope="module")
def clock_file() -> Iterator[Path]:
    """The offset of the server's clock, in a place where the server's account may read it."""
    with tempfile.TemporaryDirectory(prefix="brain-clock-") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "offset"
        file.write_text("+0\n", encoding="ascii")
        file.chmod(0o644)
        yield file


@pytest.fixture(scope="module")
def stepping_dsn(clock_file: Path) -> Iterator[str]:
    """An embedded server of the module's own, whose processes read their wall clock through libfaketime."""
    ordinary = cluster._process_options
    preload = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(clock_file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }

    def faked(account: Any) -> dict[str, Any]:
        options = ordinary(account)
        return {**options, "env": {**options["env"], **preload}}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "_process_options", faked)
        with embedded.temporary(settings=NO_TIMER) as server:
            yield server.dsn


@pytest.fixture
def step(clock_file: Path) -> Iterator[Step]:
    """Move the server's clock by an offset such as -1h, at once: nobody reads half of a file."""

    def to(offset: str) -> None:
        fresh = clock_file.with_suffix(".new")
        fresh.write_text(f"{offset}\n", encoding="ascii")
        fresh.chmod(0o644)
        fresh.replace(clock_file)

    yield to
    to("+0")


def unhurried(dsn: str, namespace: str = "") -> Brain:
    patience = {"statement_timeout_ms": 600_000, "lock_timeout_ms": 600_000}
    return factories.brain_on(dsn, namespace=namespace, settings=patience)


@pytest.fixture
async def stepping(stepping_dsn: str) -> AsyncIterator[Brain]:
    brain = unhurried(stepping_dsn)
    yield brain
    await brain.close()


async def server_clock(brain: Brain) -> datetime:
    async def job(work: Any) -> datetime:
        [instant] = await work.values("SELECT clock_timestamp()", {})
        return datetime.fromisoformat(str(instant))

    return await brain.read(job)


async def known_from(brain: Brain, ref: str) -> list[datetime]:
    found = await brain.read(lambda work: history.of(work, ref))
    return [each.row.known_from for each in found.versions]


async def test_versions_keep_their_order_while_the_clock_goes_back_and_forth(stepping: Brain, step: Step) -> None:
    stamps: list[datetime] = []
    for number, offset in enumerate(("+0", "-1h", "-2h", "+0", "-30m")):
        step(offset)
        stamps.append(
            (await factories.pin(stepping, f"State {number}.", scope="lane:work", expected_version=number)).known_from
        )
    assert await server_clock(stepping) < stamps[0] - HOUR / 3
    assert stamps == sorted(set(stamps))
    assert await known_from(stepping, "pin:work") == stamps


async def test_writers_who_meet_during_the_step_never_share_or_swap_an_instant(
    stepping: Brain, step: Step, stepping_dsn: str
) -> None:
    other = unhurried(stepping_dsn, stepping.caller.namespace)
    texts = [f"Fact number {number} about the ferry." for number in range(24)]

    async def write(brain: Brain, mine: list[str]) -> list[datetime]:
        stamps = []
        for place, text in enumerate(mine):
            if place == len(mine) // 2:
                step("-1h")
            stamps.append((await factories.fact(brain, text)).known_from)
        return stamps

    given = await asyncio.gather(
        write(stepping, texts[0::4]), write(other, texts[1::4]), write(stepping, texts[2::4]), write(other, texts[3::4])
    )
    await other.close()
    for mine in given:
        assert mine == sorted(mine)
    assert len({stamp for mine in given for stamp in mine}) == len(texts)


async def test_what_a_process_was_told_before_the_step_is_replayed_after_it(stepping: Brain, step: Step) -> None:
    await factories.constraint(stepping, "Never work on a Sunday.")
    await factories.fact(stepping, "The ferry leaves at nine.", key="ferry")
    before = [await replay.session_start(stepping, {}), await replay.searched(stepping, {"query": "ferry leaves"})]
    step("-1h")
    assert await server_clock(stepping) < datetime.now(UTC) - HOUR / 2
    await factories.constraint(stepping, "Never mail at night.")
    await factories.fact(stepping, "The ferry leaves at ten.", key="ferry")
    after = await replay.session_start(stepping, {})
    assert b"mail at night" in after.answer
    replayed = await replay.replay(stepping, [*before, after])
    assert (replayed.compared.total(), replayed.differing) == (3, [])


async def test_rectangles_still_equal_the_log_after_the_step(stepping: Brain, step: Step) -> None:
    for number, offset in enumerate(("+0", "-1h", "+0")):
        step(offset)
        await factories.fact(stepping, f"The desk is in room {number}.", key="desk")
    found = await stepping.read(lambda work: visibility.mismatched_keys(work, LAYERS["memory"]))
    assert found == []
