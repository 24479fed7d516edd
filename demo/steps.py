"""The ten steps: each one calls tools, shows the real answers, and holds them to what it claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from demo.conversation import Conversation
from demo.story import LAST_MONTH, NEW_RULE, PROJECT, PROMISED, SUNDAY_RULE, WANTED, Calendar, Entry, story

PIN: Final = f"pin:{PROJECT}"
PAGE: Final = "wiki:lantern-bay-ferries"
THREAD: Final = "thread:grindle-contract"
NOTHING: Final = "No relevant memories found for this query."

MODEL_TRAIL: Final = (
    "tidewater-goal",
    "tidewater-method",
    "tidewater-storm",
    "tidewater-grain",
    "tidewater-backtest",
)
"""Keys of the facts with the tag model, by the day on which they happened."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its heading, what it does, and in one sentence what that shows."""

    title: str
    run: Callable[[Conversation], Awaitable[None]]
    shows: str


async def session_start(talk: Conversation) -> None:
    """Read the session start."""
    start = await talk.call("get_session_continuation", most=60, keep="start")
    rules = [rule["rule"] for rule in start.data["rules"]]
    talk.expect(NEW_RULE in rules, "the newest rule is in force")
    talk.expect(SUNDAY_RULE not in rules, "a retired rule is gone")
    talk.expect(start.row("pins", PIN)["version"] == 3, "the project's pin stands at its third version")
    talk.expect([page["name"] for page in start.data["core_pages"]] == ["Working with Juniper"], "one CORE page")
    talk.expect(
        {page["ref"] for page in start.data["wiki_index"]} == {PAGE, "wiki:grindle-wick"}, "the index has two pages"
    )
    talk.expect([thread["ref"] for thread in start.data["quiet_threads"]] == [THREAD], "one thread has gone quiet")


async def quiet_thread(talk: Conversation) -> None:
    """Ask about the quiet thread and write down the answer."""
    thread = talk.answers["start"].row("quiet_threads", THREAD)
    talk.expect(thread["quiet_days"] > thread["cadence_days"], "its silence is longer than its cadence")
    talk.screen.assistant(
        f"I last heard about the contract with Grindle & Wick {thread['quiet_days']} days ago and do not know how it"
        " stands. Has it been signed?"
    )
    said = "Yes, Ines sent it back signed last night. That one is done."
    talk.screen.user(said)
    touched = await talk.call(
        "touch_thread", key="grindle-contract", status="done", said=said, expected_version=thread["version"]
    )
    row = touched.data["row"]
    talk.expect((row["status"], row["said"]) == ("done", said), "the thread is done, on the user's words")
    talk.expect(row["origin"] == "user", "the server stamps the write with the user as its origin")
    left = await talk.call("list_threads", quiet_only=True)
    talk.expect(left.data["threads"] == [], "no thread is quiet any more")


async def search_hits(talk: Conversation) -> None:
    """Ask what the brain knows."""
    talk.screen.user("Which file format was it for the Lantern Bay forecast?")
    found = await talk.call("read_memory", query="Lantern Bay forecast file format", limit=1, most=20)
    talk.expect(found.data["reason"] == "matched", "the search matched")
    hit = found.first("hits")
    talk.expect(hit["key"] == "tidewater-format", "the fact about the format comes first")
    talk.expect(hit["lexical"]["rank"] == 1 and hit["vector"]["rank"] == 1, "both legs rank it first")
    talk.expect(hit["coverage"] == 1, "it contains every word of the query")
    talk.expect(hit["score"] > 0, "it has a score")
    talk.screen.assistant("Parquet, one file a route.")


async def facts_by_trail(talk: Conversation) -> None:
    """Walk what happened to the model, in order."""
    talk.screen.user("How did the model come to be what it is?")
    trail = await talk.call("walk_trail", scope=PROJECT, tags=["model"], most=20)
    facts = {fact["key"]: fact for fact in trail.data["facts"]}
    talk.expect(tuple(facts) == MODEL_TRAIL, "the facts come in the order in which they happened")
    grain, storm = facts["tidewater-grain"], facts["tidewater-storm"]
    talk.expect("by day" in grain["text"] and grain["version"] == 2, "only the present version of a fact is shown")
    talk.expect(storm["known_from"] > grain["known_from"], "a fact that was learned late stands where it happened")


async def search_finds_nothing(talk: Conversation) -> None:
    """Ask what the brain does not know."""
    talk.screen.user("And what is the policy number of my travel insurance for the ferry to Norway?")
    found = await talk.call("read_memory", query="travel insurance policy number ferry Norway", scope="all", most=20)
    evidence = found.data["diagnosis"]
    talk.expect(found.data["hits"] == [], "there is no hit")
    talk.expect(found.data["message"] == NOTHING, "the answer says that nothing was found")
    talk.expect(found.data["reason"] in ("no_match", "below_floor"), "the reason is the honesty floor, not a failure")
    talk.expect(evidence["rows_searched"] == visible_facts(talk.calendar), "every visible fact was searched")
    talk.expect(evidence["exact"], "the search was exact")
    talk.expect(evidence["lexical"]["status"] == evidence["vector"]["status"] == "ran", "both legs ran")
    talk.screen.assistant("I do not know; nothing in your memory says it.")


async def record_beats_memory(talk: Conversation) -> None:
    """Weigh an invoice against an estimate and the model's own recall."""
    talk.screen.user("How much was invoice LB-07?")
    booked = await talk.call("read_records", kind="invoice", title="LB-07", most=8, around="kind: invoice")
    record = booked.first("records")
    talk.expect((record["value"], record["unit"]) == ("4800.00", "EUR"), "the record holds the exact amount")
    noted = await talk.call("read_memory", query="invoice LB-07 expected", limit=1, most=3)
    memory = noted.first("hits")
    talk.expect(memory["key"] == "tidewater-estimate", "the memory is the estimate")
    verdict = await talk.call(
        "weigh_claims",
        claims=[{"ref": memory["ref"], "value": "EUR 4,500"}, {"ref": record["ref"], "value": "4800.00 EUR"}],
        recall="about 4,200 euros",
    )
    flagged = {flag["ref"] for flag in verdict.data["flags"]}
    talk.expect(verdict.data["outcome"] == "settled", "the question is settled")
    talk.expect(verdict.data["winner"]["ref"] == f"{record['ref']}@1", "the record wins")
    talk.expect(flagged == {f"{memory['ref']}@{memory['version']}", "recall"}, "memory and recall are flagged")
    talk.screen.assistant("EUR 4,800.00, as invoiced; the 4,500 was an estimate made before.")


async def memory_contests_pin(talk: Conversation) -> None:
    """Weigh a pin against a memory that is newer."""
    talk.screen.user("When is the final forecast due?")
    on = talk.calendar
    noted = await talk.call("read_memory", query="final delivery Tobias Wren asked", limit=1, most=3, keep="moved")
    memory = noted.first("hits")
    talk.expect(memory["key"] == "tidewater-delivery", "the memory is about the delivery")
    verdict = await talk.call(
        "weigh_claims",
        claims=[{"ref": PIN, "value": on.day(PROMISED)}, {"ref": memory["ref"], "value": on.day(WANTED)}],
        keep="contested",
    )
    talk.expect(verdict.data["outcome"] == "contested", "the question is contested")
    talk.expect(verdict.data["winner"] is None, "nobody wins")
    talk.expect(len(verdict.data["sides"]) == 2, "both sides are shown")
    talk.expect("Ask the user" in verdict.data["advice"], "the advice is to ask")
    talk.screen.assistant(
        f"I have two dates. The pin says {on.day(PROMISED)}; a newer note says that Tobias Wren asked for"
        f" {on.day(WANTED)}. Which one holds?"
    )
    talk.screen.user(confirmation(on))


async def friction(talk: Conversation) -> None:
    """Log a failure, first without evidence and then with it."""
    complaint: dict[str, Any] = {
        "happened": "The pin still promised the old delivery date.",
        "expected": "The pin follows the client's newer wish.",
        "category": "memory",
    }
    refusal = await talk.refused("log_friction", **complaint, artifact="The pin still promised the old date.")
    talk.expect("artifact" in refusal, "the refusal names the artifact")
    quote = talk.answers["contested"].text.split("\n", 1)[0]
    logged = await talk.call("log_friction", **complaint, artifact=quote)
    talk.expect(logged.data["outcome"] == "created", "the same entry with a verbatim quote is accepted")
    unread = await talk.refused("get_history", ref=logged.data["ref"])
    talk.expect("human" in unread, "no tool reads the failure log back")


async def session_close(talk: Conversation) -> None:
    """Set the pin, rewrite the page, write the facts; the versions are those that were read at the start."""
    start, on = talk.answers["start"], talk.calendar
    before = await talk.call("get_session_continuation", most=1, keep="before")
    talk.expect(before.data["as_of"] > start.data["as_of"], "this is the last instant before the close")
    said = confirmation(on)
    fact = await talk.call(
        "write_memory",
        key="tidewater-delivery-agreed",
        text=f"Juniper agreed to deliver the final forecast on {on.day(WANTED)}.",
        kind="decision",
        tags=["client"],
        importance=4,
        said=said,
    )
    contract = await talk.call(
        "write_memory",
        key="grindle-contract-signed",
        text="Grindle & Wick returned the contract signed.",
        kind="event",
        scope="lane:work",
        occurred=on.day(1),
    )
    pin = await talk.call(
        "set_pin",
        state=f"Forecast version two is with the client. Final delivery is on {on.day(WANTED)}, agreed by Juniper.",
        next="Write the covering letter.",
        cites=[fact.data["row"]["ref"]],
        expected_version=start.row("pins", PIN)["version"],
    )
    page = await talk.call("read_wiki", page="Lantern Bay Ferries", most=1)
    rewritten = await talk.call(
        "write_wiki",
        page="Lantern Bay Ferries",
        body=page.data["page"]["body"] + "- May ask for a delivery earlier than agreed\n",
        expected_version=start.row("wiki_index", PAGE)["version"],
    )
    talk.expect({fact.data["outcome"], contract.data["outcome"]} == {"created"}, "two facts are new")
    talk.expect(pin.data["row"]["version"] == 4, "the pin has a fourth version")
    talk.expect(rewritten.data["row"]["version"] == 3, "the page has a third version")
    stale = await talk.refused("set_pin", state="Something else", expected_version=start.row("pins", PIN)["version"])
    talk.expect("version 4" in stale, "a second write on the old version is a conflict, and nothing is lost")


async def time_travel(talk: Conversation) -> None:
    """Replay the session start as of instants before the close."""
    for name, words in (("start", "the session start of step 1"), ("before", "the one right before the close")):
        then = talk.answers[name]
        replayed = await talk.call("get_session_continuation", as_of=then.data["as_of"], most=1)
        talk.screen.line(f"SHA-256 of {words}:")
        talk.screen.line(f"  {then.digest} then")
        talk.screen.line(f"  {replayed.digest} replayed now")
        talk.expect(replayed == then, f"{words} is the same byte for byte")
    now = await talk.call("get_session_continuation", most=5, around=PIN)
    talk.expect(now.row("pins", PIN)["version"] == 4, "without as_of the new pin is shown")
    last_month = await talk.call("get_session_continuation", as_of=talk.calendar.day(LAST_MONTH), most=40)
    rules = [rule["rule"] for rule in last_month.data["rules"]]
    talk.expect(SUNDAY_RULE in rules, "last month a rule held that was retired since")
    talk.expect(last_month.row("pins", PIN)["version"] == 2, "last month the pin stood at its second version")
    later = [entry for entry in story(talk.calendar.today) if entry.known_at > talk.calendar.at(LAST_MONTH, 0)]
    leaked = [text for entry in later for text in told(entry) if text in str(last_month.data) + last_month.text]
    talk.expect(not leaked, "nothing that was learned later is in last month's session start")


def confirmation(on: Calendar) -> str:
    """What the user answers when asked for the date."""
    return f"Tobias is right, it is {on.day(WANTED)} now."


def told(entry: Entry) -> list[str]:
    """Return the texts by which an entry would be recognised."""
    names = () if entry.does == "retire" else ("rule", "state", "body", "title", "text", "artifact")
    return [entry.fields[name] for name in names if name in entry.fields]


def visible_facts(on: Calendar) -> int:
    """Count the facts of the story that hold now, by their keys."""
    now = on.day(0)
    facts: list[Any] = [entry.fields for entry in story(on.today) if entry.does == "memory"]
    return len({fact["key"] for fact in facts if fact.get("valid_to", "9999") > now})


STEPS: Final = (
    Step(
        "Session start",
        session_start,
        "one call gives the assistant the rules, where things stand, what went quiet and what there is to read.",
    ),
    Step(
        "A quiet thread is asked about and answered",
        quiet_thread,
        "silence closes nothing; the status moves on the user's own words, which are kept.",
    ),
    Step(
        "A search that hits",
        search_hits,
        "a hit explains itself: what the words say, what the vectors say, and the score that comes of both.",
    ),
    Step(
        "Facts read by trail",
        facts_by_trail,
        "what happened is read in order of events, complete and without a search.",
    ),
    Step(
        "A search that finds nothing",
        search_finds_nothing,
        "below the honesty floor the answer is nothing, with the evidence that it was looked for.",
    ),
    Step(
        "A record beats a recalled memory",
        record_beats_memory,
        "hard data outweighs a note and the model's own recall, and both are flagged for correction.",
    ),
    Step(
        "A newer memory contests an older pin",
        memory_contests_pin,
        "when a summary may be out of date the brain takes no side: it shows both and says to ask.",
    ),
    Step(
        "Friction needs an artifact",
        friction,
        "a complaint without evidence is refused, one with a verbatim quote is kept for a human.",
    ),
    Step(
        "Session close",
        session_close,
        "what changed is written where it belongs, under the version that was read, so that nothing is lost.",
    ),
    Step(
        "The session start as it was",
        time_travel,
        "any past session start can be replayed byte for byte; nothing learned later leaks into it.",
    ),
)
