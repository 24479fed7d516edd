"""Write rules of the wiki: one compiled page an entity, its text kept byte for byte, no snapshots and no logs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import Conflict, InvalidInput, NotFound, Refused
from brain.runtime import Brain
from brain.services import wiki
from tests import factories

SNAPSHOTS = [
    "Status 2026-03-01", "Kestrel 2026-03", "2026_03_01", "Kestrel 20260301", "Notes 01.03.2026", "Report 1/3/26",
    "Report 03/01/2026", "March 2026", "Kestrel, Mar 2026", "1st March", "12 Sept. 2026", "March 1st, 2026", "May 12",
    "Plan of 3 May", "3 March update", "Week 12", "KW 07", "2026-W07", "Status as of 5 June 2026",
    "Log", "Work log", "Change log", "Changelog", "CHANGE-LOG", "Kestrel log", "Decision log", "Diary", "Project diary",
    "Journal", "Work journal", "Status snapshot", "Snapshot", "Meeting minutes", "Minutes", "Minutes of the board",
    "Daily notes", "Daily log", "Weekly update", "Weekly summary", "Standup notes", "Stand-up log", "Session notes",
    "Meeting notes", "Update history", "History of changes", "Daily", "Weekly",
]  # fmt: skip
PAGES = [
    "Blog", "May Lindqvist", "Catalogue", "Logistics", "April Okafor", "June", "August Strindberg", "Marlow & Finch",
    "Kestrel dashboard", "Login", "Log in", "Log levels", "How to log hours", "Log Analytics", "Audit log",
    "Python 3.11.12", "Node 20.11.10", "10.0.0.12", "RFC 2119", "ISO 27001", "Model 1911", "Order 4500210112",
    "Answer within 30 minutes", "Fifteen minutes from the station", "Wall Street Journal", "Journal entries",
    "Daily rate", "Weekly capacity", "The Daily Mail", "Snapshot tests", "Stand-up comedy", "Dialogue", "Prologue",
    "Phase 2 may follow", "Step 1 may fail", "Route 66", "Windows 11", "Form W-9", "Goals 2026", "Roadmap Q3 2026",
    "Analog devices", "Backlog", "Marching band", "Decimals", "Septic tank", "Octopus", "Janice", "Weekend house",
    "東京オフィス", "Café Orléans", "C++", "SQL & BM25",
]  # fmt: skip
HOSTILE = ["# " + "# " * 25_000 + "x", "#" * 50_000, "- \n" * 15_000, "```\n" * 12_000, "a\n" * 25_000 + "-" * 5_000]


@pytest.mark.parametrize("name", SNAPSHOTS)
async def test_a_page_named_like_a_snapshot_or_a_log_is_refused(brain: Brain, name: str) -> None:
    with pytest.raises(Refused, match=r"snapshot|a log") as caught:
        await factories.page(brain, name)
    assert caught.value.field == "page"
    assert "write_memory" in caught.value.hint


@pytest.mark.parametrize("heading", [*SNAPSHOTS, "~~Log~~", "**2026-03-01**"])
@pytest.mark.parametrize("form", ["# {}", "Text.\n\n### {} ##\n\nMore.", "{}\n===", "  {}\n---\n"])
def test_a_heading_that_makes_a_snapshot_or_a_log_is_found(heading: str, form: str) -> None:
    assert wiki.headings(form.format(heading))
    with pytest.raises(Refused) as caught:
        wiki.check_headings(form.format(heading))
    assert caught.value.field == "body"


@pytest.mark.parametrize("name", PAGES)
async def test_an_entity_whose_name_only_resembles_one_has_its_page(brain: Brain, name: str) -> None:
    body = f"# {name}\n\nText.\n\n## About {name}\n"
    row = await factories.page(brain, name, body)
    assert (row.name, row.version, row.body) == (name, 1, body)


@pytest.mark.parametrize(
    "body",
    [
        "Text of 2026-03-01 that is no heading.\nLog",
        "```\n# Log 2026-03-01\n```\ntext",
        "~~~~ md\n# 2026-03-01\n~~~\n# Diary\n~~~~\n",
        "#Log is a tag, not a heading",
        "---\ndate: 2026-03-01\n---\n# Marlow\n",
        "Date | Amount\n--- | ---\n2026-03-01 | 5",
        "Paid 2026-03-01.\n\n---\n\nText.",
        "####### Log",
    ],
)
async def test_dates_and_logs_outside_headings_are_fine(brain: Brain, body: str) -> None:
    assert (await factories.page(brain, "Marlow", body)).body == body


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_body_is_checked_in_linear_time(body: str) -> None:
    started = time.perf_counter()
    wiki.headings(body)
    assert time.perf_counter() - started < 2


async def test_a_heading_in_the_body_is_refused_and_nothing_is_stored(brain: Brain) -> None:
    with pytest.raises(Refused) as caught:
        await factories.page(brain, "Marlow", "# Marlow\n\n## 2026-03-01\n\nCalled.")
    assert caught.value.field == "body"
    with pytest.raises(NotFound):
        await brain.read(lambda work: wiki.read(work, "Marlow"))


@given(st.text(min_size=1, max_size=400).filter(str.strip))
@settings(max_examples=25, deadline=None)
async def test_a_body_comes_back_byte_for_byte(module_store: Brain, body: str) -> None:
    name = factories.fresh_name("page")
    try:
        row = await factories.page(module_store, name, body)
    except (Refused, InvalidInput):
        return
    assert row.body == body
    assert (await module_store.read(lambda work: wiki.read(work, name))).body == body


@pytest.fixture(scope="module")
async def module_store(module_dsn: str) -> Any:
    brain = factories.brain_on(module_dsn)
    yield brain
    await brain.close()


async def test_a_rewrite_raises_the_version_and_the_past_keeps_the_old_text(brain: Brain) -> None:
    first = await factories.page(brain, "Marlow", "Old.", summary="A client", core=True)
    second = await factories.page(brain, "MARLOW", "New.", expected_version=1)
    assert (second.id, second.version, second.name) == (first.id, 2, "Marlow")
    assert (second.core, second.summary) == (True, "A client")
    assert (await brain.read(lambda work: wiki.read(work, "marlow"))).body == "New."
    past = await brain.read(lambda work: wiki.read(work, "marlow"), as_of=first.known_from)
    assert (past.body, past.version) == ("Old.", 1)


@pytest.mark.parametrize("expected", [0, 2])
async def test_a_stale_page_write_is_refused_with_the_current_text(brain: Brain, expected: int) -> None:
    await factories.page(brain, "Marlow", "Current text.")
    with pytest.raises(Conflict) as caught:
        await factories.page(brain, "Marlow", "Lost.", expected_version=expected)
    assert (caught.value.current["body"], caught.value.current["version"]) == ("Current text.", 1)


async def test_a_page_that_says_the_same_is_left_as_it_is(brain: Brain) -> None:
    await factories.page(brain, "Marlow", "Text.", summary="A client")
    row, changed = await brain.write(lambda work: wiki.write(work, page="Marlow", body="Text."))
    assert (changed, row.version) == (False, 1)


@pytest.mark.parametrize(
    ("first", "twin"),
    [("café", "cafe\u0301"), ("CORE", "CO\u200bRE"), ("Straße", "STRASSE"), ("Kestrel", " kestrel "), ("ﬁle", "file"),
     ("a_b", "a-b"), ("Ⅷ", "viii")],
)  # fmt: skip
async def test_two_spellings_of_one_name_are_one_page(brain: Brain, first: str, twin: str) -> None:
    page = await factories.page(brain, first, "One.")
    with pytest.raises(Conflict):
        await factories.page(brain, twin, "Two.")
    assert (await brain.read(lambda work: wiki.read(work, twin))).id == page.id


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "///", "👍"])
async def test_a_page_needs_a_name(brain: Brain, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.page(brain, name)
    assert caught.value.field == "page"


async def test_a_missing_page_names_the_pages_that_come_near(brain: Brain) -> None:
    await factories.page(brain, "kestrel-dashboard")
    with pytest.raises(NotFound) as caught:
        await brain.read(lambda work: wiki.read(work, "Kestrel"))
    assert "kestrel-dashboard" in caught.value.hint


async def test_a_page_does_not_change_its_scope(brain: Brain) -> None:
    await factories.page(brain, "Marlow", scope="lane:work")
    with pytest.raises(Refused) as caught:
        await factories.page(brain, "Marlow", "New.", scope="lane:school", expected_version=1)
    assert caught.value.field == "scope"


async def test_a_page_is_as_weak_as_what_it_cites(brain: Brain) -> None:
    own = await factories.fact(brain)
    row = await factories.page(factories.as_caller(brain, origin="human"), cites=[f"memory:{own.id}@1"])
    assert (row.origin, row.cites) == ("model", [f"memory:{own.id}@1"])
