"""The demo: its worked examples against the trust rule, its invented data, and the walk-through itself, run twice."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import demo.walkthrough
from brain.trust import Claim, Layer, weigh
from demo.conversation import Conversation
from demo.steps import MODEL_TRAIL, Step, visible_facts
from demo.story import LAST_MONTH, NEW_RULE, SUNDAY_RULE, Calendar, Entry, story

ROOT = Path(__file__).parent.parent
DAYS = [date(2026, 1, 1), date(2026, 11, 30), date(2028, 2, 29), date(2031, 3, 31)]

HEADINGS = [
    "1  Session start",
    "2  A quiet thread is asked about and answered",
    "3  A search that hits",
    "4  Facts read by trail",
    "5  A search that finds nothing",
    "6  A record beats a recalled memory",
    "7  A newer memory contests an older pin",
    "8  Friction needs an artifact",
    "9  Session close",
    "10  The session start as it was",
]


# --- the worked examples ------------------------------------------------------------------------------------------

INVOICE = ("record", "4800.00 EUR", 20)
ESTIMATE = ("memory", "EUR 4,500", 26)
RECALL = ("recall", "about 4,200 euros", None)
PIN = ("pin", "2026-12-09", 12)
REQUEST = ("memory", "2026-12-05", 4)

EXAMPLES = [
    ("step 6, the invoice against the estimate and recall", [INVOICE, ESTIMATE, RECALL], "settled", "record"),
    ("step 6 without recall", [INVOICE, ESTIMATE], "settled", "record"),
    ("step 6, had the estimate been written later", [INVOICE, ("memory", "EUR 4,500", 2)], "settled", "record"),
    ("step 6, had the memory said the same", [INVOICE, ("memory", "€4,800", 26)], "agreed", "record"),
    ("step 6 before the invoice", [ESTIMATE, RECALL], "settled", "memory"),
    ("step 6 with recall alone", [RECALL], "unsupported", None),
    ("step 7, the request against the older pin", [PIN, REQUEST], "contested", None),
    ("step 7, had the request come before the pin", [PIN, ("memory", "2026-12-05", 14)], "settled", "pin"),
    ("step 7, had recall sided with the pin", [PIN, REQUEST, ("recall", "2026-12-09", None)], "contested", None),
    ("step 7 with the deadline on record", [("record", "2026-12-05", 4), PIN], "settled", "record"),
    ("step 9, the pin as it was rewritten", [("pin", "5 December 2026", 0), REQUEST], "agreed", "pin"),
]


@pytest.mark.parametrize(("rows", "outcome", "winner"), [case[1:] for case in EXAMPLES], ids=[c[0] for c in EXAMPLES])
def test_the_worked_examples_are_weighed_as_the_trust_order_says(
    rows: list[tuple[str, str, int | None]], outcome: str, winner: str | None
) -> None:
    today = datetime(2026, 11, 30, tzinfo=UTC)
    claims = [
        Claim(Layer(layer), value, None if ago is None else today - timedelta(days=ago), layer)
        for layer, value, ago in rows
    ]
    verdict = weigh(claims)
    assert verdict.outcome == outcome
    assert (verdict.winner.ref if verdict.winner else None) == winner


# --- the story ----------------------------------------------------------------------------------------------------


def texts(entry: Entry) -> str:
    return repr(dict(entry.fields))


@pytest.mark.parametrize("today", DAYS)
def test_the_story_is_told_in_order_and_ends_a_few_days_ago(today: date) -> None:
    known = [entry.known_at for entry in story(today)]
    assert known == sorted(known)
    midnight = datetime(today.year, today.month, today.day, tzinfo=UTC)
    assert timedelta(days=120) < midnight - known[0]
    assert timedelta(days=1) < midnight - known[-1] < timedelta(days=5)


@pytest.mark.parametrize("today", DAYS)
def test_nothing_is_known_before_it_happened(today: date) -> None:
    for entry in story(today):
        for name in ("occurred", "date"):
            if name in entry.fields and entry.fields.get("kind") != "deadline":
                assert datetime.fromisoformat(f"{entry.fields[name]}T00:00:00+00:00") <= entry.known_at, texts(entry)


def test_a_row_that_is_rewritten_is_known_later_each_time() -> None:
    seen: dict[tuple[str, str], datetime] = {}
    for entry in story(DAYS[1]):
        name = {"pin": "scope", "wiki": "page", "thread": "key", "memory": "key"}.get(entry.does)
        if name:
            row = (entry.does, entry.fields[name])
            assert row not in seen or seen[row] < entry.known_at
            seen[row] = entry.known_at


def test_the_story_fills_every_layer_and_retires_a_rule() -> None:
    does = {entry.does for entry in story(DAYS[1])}
    assert does == {"constraint", "retire", "record", "pin", "wiki", "thread", "memory", "friction"}


def test_last_month_lies_between_the_two_rules_of_the_walk_through() -> None:
    entries = story(DAYS[1])
    then = datetime(2026, 11, 30, tzinfo=UTC) - timedelta(days=LAST_MONTH)
    [added] = [e.known_at for e in entries if e.does == "constraint" and e.fields["rule"] == SUNDAY_RULE]
    [retired] = [e.known_at for e in entries if e.does == "retire" and e.fields["rule"] == SUNDAY_RULE]
    [new] = [e.known_at for e in entries if e.does == "constraint" and e.fields["rule"] == NEW_RULE]
    assert added < then < retired < new


@pytest.mark.parametrize("today", DAYS)
def test_the_trail_of_the_walk_through_is_that_of_the_story(today: date) -> None:
    facts = [e.fields for e in story(today) if e.does == "memory" and "model" in e.fields.get("tags", ())]
    newest = {fact["key"]: fact["occurred"] for fact in facts}
    assert tuple(sorted(newest, key=newest.__getitem__)) == MODEL_TRAIL


@pytest.mark.parametrize("today", DAYS)
def test_a_fact_whose_validity_is_over_is_not_counted_as_visible(today: date) -> None:
    keys = {entry.fields["key"] for entry in story(today) if entry.does == "memory"}
    assert visible_facts(Calendar(today)) == len(keys) - 1


def test_nothing_in_the_demo_leads_to_a_real_person_or_place_on_the_network() -> None:
    told = " ".join(texts(entry) for today in DAYS for entry in story(today))
    written = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "demo").glob("*.py")))
    for text in (told, written):
        assert all(domain.endswith(".example") for domain in re.findall(r"[\w.+-]+@([\w.-]+\w)", text))
        assert re.findall(r"\bhttps?://|\bwww\.", text) == []
        without_dates = re.sub(r"\d{4}-\d{2}-\d{2}", "", text)
        assert re.findall(r"\+\d|(?:\d[ /()-]{0,2}){7,}", without_dates) == []


# --- the walk-through ---------------------------------------------------------------------------------------------


def walk(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; from demo.walkthrough import main; sys.exit(main({', '.join(arguments)}))"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=170,
        check=False,
    )


def headings(output: str) -> list[str]:
    lines = output.splitlines()
    return [line for line, under in itertools.pairwise(lines) if re.fullmatch(r"-+", under)]


def dialogue(output: str) -> list[str]:
    """What is said, called and shown; without dates, since midnight may fall between two runs."""
    lines = re.sub(r"\d{4}-\d{2}-\d{2}", "DATE", output).splitlines()
    return [line for line in lines if re.match(r"Shows|User|Assistant|  -> ", line)]


def test_the_walk_through_works_twice_on_the_same_database_and_is_plain_in_a_pipe(environment: dict[str, str]) -> None:
    first, second = walk(environment), walk(environment)
    for run in (first, second):
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
        assert headings(run.stdout) == [*HEADINGS, "Summary"]
        assert "\x1b" not in run.stdout
        assert re.findall("[\u2500-\u259f]", run.stdout) == []
        wide = [line for line in run.stdout.splitlines() if len(line) > 100 and "brain" not in line]
        assert wide == []
        assert run.stdout.splitlines()[-1].startswith("  claude mcp add brain -- ")
    assert len(dialogue(first.stdout)) > 40
    assert dialogue(first.stdout) == dialogue(second.stdout)
    spaces = [re.search(r"new namespace (demo-\d{8}-\d{6}\S*) ", run.stdout) for run in (first, second)]
    assert len({found[1] for found in spaces if found}) == 2


def test_seed_only_fills_a_namespace_and_asks_nothing(environment: dict[str, str]) -> None:
    run = walk(environment, "seed_only=True")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(story(datetime.now(UTC).date()))} dated writes" in run.stdout
    assert headings(run.stdout) == []


def test_a_failed_expectation_ends_with_exit_code_1_and_a_plain_sentence(
    dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def wrong(talk: Conversation) -> None:
        await talk.call("get_status")
        talk.expect(False, "two is three")

    monkeypatch.setenv("DATABASE_URL", dsn)
    monkeypatch.setattr(demo.walkthrough, "STEPS", (Step("Wrong", wrong, "nothing."),))
    assert demo.walkthrough.main(plain=True) == 1
    printed = capsys.readouterr().out
    assert printed.endswith("The demo stops: this was to hold, and does not: two is three.\n")
    assert "Traceback" not in printed


def test_a_server_that_does_not_answer_ends_with_exit_code_1_and_a_plain_sentence(
    dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", dsn)
    monkeypatch.setattr(demo.walkthrough, "SERVER", (sys.executable, "-c", "raise SystemExit(3)"))
    assert demo.walkthrough.main(plain=True) == 1
    assert "The demo stops: the server process did not answer" in capsys.readouterr().out


@pytest.mark.parametrize(("plain", "coloured"), [("False", True), ("True", False)])
def test_colours_are_for_terminals_and_plain_switches_them_off(plain: str, coloured: bool) -> None:
    code = f"from demo.screen import Screen; Screen(plain={plain}).heading('Heading')"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"FORCE_COLOR": "1", "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("\x1b" in run.stdout) is coloured
    assert "Heading" in run.stdout
