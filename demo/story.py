"""The demo's data: Juniper Vale, a freelance analyst. She, her clients, every name and every figure are invented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

PROJECT = "project:tidewater"
BEESWAX = "project:beeswax"

LAST_MONTH = 30
"""Days back to the instant at which the walk-through looks at the brain "as it stood last month"."""

PROMISED = -9
"""Days ago (so: to come) of the delivery that the pin still promises."""
WANTED = -5
"""Days ago (so: to come) of the delivery that the client asked for afterwards."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days counted back from today, so that the story is as fresh on every day that it is told."""

    today: date

    def day(self, ago: int) -> str:
        """Return a day as the tools take it; a negative number lies ahead."""
        return (self.today - timedelta(days=ago)).isoformat()

    def at(self, ago: int, hour: int) -> datetime:
        """Return an instant of a past day."""
        return datetime.combine(self.today - timedelta(days=ago), time(hour), UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """One write of the import: when it was known, what it does, and the arguments of the service that does it."""

    known_at: datetime
    does: str
    fields: Mapping[str, Any]


def story(today: date) -> list[Entry]:
    """Return every write of the import in the order in which it was known."""
    calendar = Calendar(today)
    parts = (_rules, _records, _pages, _pins, _threads, _facts_of_tidewater, _other_facts, _friction)
    return sorted((entry for part in parts for entry in part(calendar)), key=lambda entry: entry.known_at)


def _rules(on: Calendar) -> list[Entry]:
    return [
        Entry(
            on.at(150, 9),
            "constraint",
            {
                "rule": "Nothing goes to a client before Juniper has seen it.",
                "said": "Never send anything to a client before I have seen it.",
            },
        ),
        Entry(
            on.at(140, 9),
            "constraint",
            {
                "rule": "Amounts carry their currency and are never rounded.",
                "scope": "lane:work",
                "said": "Always write the currency, and never round an amount.",
            },
        ),
        Entry(
            on.at(90, 9),
            "constraint",
            {"rule": SUNDAY_RULE, "said": "Keep my Sundays free of work, please."},
        ),
        Entry(
            on.at(19, 9),
            "retire",
            {"rule": SUNDAY_RULE, "said": "Forget the Sunday rule, I work on Sundays for now."},
        ),
        Entry(
            on.at(18, 9),
            "constraint",
            {
                "rule": NEW_RULE,
                "scope": PROJECT,
                "said": "No passenger-level rows leave this machine, ever.",
                "reason": "Agreed with Lantern Bay Ferries.",
            },
        ),
    ]


SUNDAY_RULE = "No work messages on Sundays."
NEW_RULE = "Every export of Tidewater holds daily totals only, no passenger-level rows."


def _records(on: Calendar) -> list[Entry]:
    def invoice(ago: int, title: str, value: str, scope: str, client: str) -> Entry:
        fields = {"kind": "invoice", "title": title, "date": on.day(ago), "value": value, "unit": "EUR"}
        return Entry(on.at(ago, 17), "record", fields | {"scope": scope, "fields": {"client": client}})

    return [
        invoice(96, "LB-05", "3200.00", PROJECT, "Lantern Bay Ferries"),
        invoice(61, "LB-06", "3600.00", PROJECT, "Lantern Bay Ferries"),
        invoice(50, "GW-02", "1450.50", BEESWAX, "Grindle & Wick"),
        invoice(20, "LB-07", "4800.00", PROJECT, "Lantern Bay Ferries"),
        Entry(
            on.at(38, 16),
            "record",
            {
                "kind": "measurement",
                "title": "Backtest error of the harbour route",
                "date": on.day(38),
                "value": "6.4",
                "unit": "%",
                "scope": PROJECT,
                "source": "backtest.ipynb, last cell",
            },
        ),
        Entry(
            on.at(6, 12),
            "record",
            {"kind": "deadline", "title": "Quarterly tax advance", "date": on.day(-16), "scope": "lane:personal"},
        ),
    ]


def _pages(on: Calendar) -> list[Entry]:
    working = (
        "# Working with Juniper\n\n- Answer first, reasons after.\n- Show code only when she asks for it.\n"
        "- Say plainly what is not known.\n"
    )
    return [
        Entry(
            on.at(145, 10),
            "wiki",
            {"page": "Working with Juniper", "core": True, "scope": "global", "body": working},
        ),
        Entry(
            on.at(95, 10),
            "wiki",
            {
                "page": "Lantern Bay Ferries",
                "scope": PROJECT,
                "summary": "Ferry line with four routes; client of Tidewater",
                "body": "# Lantern Bay Ferries\n\nFour routes. Contact: Tobias Wren, tobias@lantern-bay.example.\n",
            },
        ),
        Entry(
            on.at(33, 10),
            "wiki",
            {
                "page": "Lantern Bay Ferries",
                "summary": "Ferry line with four routes; wants Parquet, one file a route",
                "body": PAGE,
                "expected_version": 1,
            },
        ),
        Entry(
            on.at(34, 11),
            "wiki",
            {
                "page": "Grindle & Wick",
                "scope": "lane:work",
                "summary": "Candle makers with subscription boxes; client of Beeswax",
                "body": "# Grindle & Wick\n\nCandle makers. Contact: Ines Tallow, ines@grindle-wick.example.\n",
            },
        ),
    ]


PAGE = """# Lantern Bay Ferries

Four routes: harbour, island, lighthouse, night boat.

- Contact: Tobias Wren, tobias@lantern-bay.example
- Wants the forecast in Parquet, one file a route
- Reads a monthly letter; a dashboard was declined
"""


def _pins(on: Calendar) -> list[Entry]:
    def pin(ago: int, scope: str, state: str, following: str, version: int = 0, blocked_on: str = "") -> Entry:
        fields = {"scope": scope, "state": state, "next_step": following, "blocked_on": blocked_on}
        return Entry(on.at(ago, 18), "pin", fields | {"expected_version": version})

    promised = f"Forecast version two is with the client. Final delivery is on {on.day(PROMISED)}."
    return [
        pin(115, PROJECT, "Ticket scans arrive every night.", "Agree on the routes to forecast."),
        pin(45, PROJECT, "The daily model is in place; the backtest is running.", "Send forecast version one.", 1),
        pin(12, PROJECT, promised, "Write the covering letter.", 2, "Comments of Tobias Wren"),
        pin(60, "lane:work", "Two clients, one offer to write.", "Write the offer to Saltmarsh Museum."),
        pin(16, "lane:work", "Two clients; the offer is with Saltmarsh Museum.", "Invoice Tidewater.", 1),
        pin(9, "lane:school", "The essay is passed.", "Choose the next evening course."),
        pin(27, BEESWAX, "The second survey is in the field.", "Read the answers.", 0, "A signed contract"),
    ]


def _threads(on: Calendar) -> list[Entry]:
    return [
        Entry(
            on.at(22, 15),
            "thread",
            {
                "key": "grindle-contract",
                "title": "Signed contract from Grindle & Wick",
                "scope": "lane:work",
                "cadence_days": 7,
                "note": "Agreed in principle; Ines Tallow is to send it signed.",
            },
        ),
        Entry(
            on.at(20, 15),
            "thread",
            {
                "key": "grindle-contract",
                "status": "waiting",
                "said": "I am waiting for their signature.",
                "expected_version": 1,
            },
        ),
        Entry(
            on.at(6, 15),
            "thread",
            {
                "key": "tax-advance",
                "title": "Quarterly tax advance",
                "scope": "lane:personal",
                "cadence_days": 30,
            },
        ),
        Entry(
            on.at(3, 15),
            "thread",
            {
                "key": "harbour-holidays",
                "title": "Local holidays are missing from the harbour calendar",
                "scope": PROJECT,
                "cadence_days": 10,
            },
        ),
    ]


def _fact(on: Calendar, ago: int, key: str, text: str, *, learned: int | None = None, **more: Any) -> Entry:
    """A fact that occurred some days ago and, unless it says otherwise, was learned on that day."""
    fields = {"key": key, "text": text, "occurred": on.day(ago), **more}
    return Entry(on.at(ago if learned is None else learned, 20), "memory", fields)


def _facts_of_tidewater(on: Calendar) -> list[Entry]:
    def fact(ago: int, key: str, kind: str, tags: str, text: str, **more: Any) -> Entry:
        return _fact(on, ago, f"tidewater-{key}", text, kind=kind, tags=tags.split(), scope=PROJECT, **more)

    goal = "Tidewater forecasts daily passengers of four routes, twelve weeks ahead."
    by_day = "Tidewater adds ticket scans up by day, since weekly totals hid the peaks."
    parquet = "Lantern Bay Ferries wants the forecast in Parquet file format, one file a route."
    moved = f"Tobias Wren asked to have the final delivery on {on.day(WANTED)} instead of {on.day(PROMISED)}."
    pier = "Pier Two is closed for repairs, so the island route starts at Pier Four."
    storm = "A storm kept all boats in port for two days; the model leaves those days out."
    harbour_log = "log book of the harbour office"
    return [
        fact(118, "goal", "decision", "model", goal),
        fact(110, "grain", "decision", "model", "Tidewater adds ticket scans up by week."),
        fact(44, "grain", "decision", "model", by_day),
        fact(88, "method", "decision", "model", "Seasonal ridge regression; boosted trees were no better."),
        fact(75, "dashboard", "decision", "client", "Lantern Bay Ferries declined a dashboard; a letter is enough."),
        fact(70, "pier", "event", "data", pier, valid_to=on.day(25)),
        fact(64, "gates", "lesson", "data", "Gate counts of the harbour route double on market days; count tickets."),
        fact(57, "format", "preference", "client", parquet, said="They want Parquet, one file a route."),
        fact(52, "storm", "event", "data model", storm, learned=21, reference=harbour_log),
        fact(38, "backtest", "event", "model", "The backtest of the daily model missed by 6.4 percent."),
        fact(31, "version-one", "event", "client", "Forecast version one went to Tobias Wren."),
        fact(
            26, "estimate", "note", "invoice", "Juniper expects invoice LB-07 to come to EUR 4,500.", confidence="0.7"
        ),
        fact(13, "version-two", "event", "client", "Forecast version two went to Tobias Wren, without the storm days."),
        fact(4, "delivery", "event", "client", moved, importance=4),
    ]


def _other_facts(on: Calendar) -> list[Entry]:
    def fact(ago: int, key: str, text: str, kind: str, scope: str, **more: Any) -> Entry:
        return _fact(on, ago, key, text, kind=kind, scope=scope, **more)

    sister = f"Marigold, the sister of Juniper, visits on {on.day(-20)}."
    return [
        fact(140, "rate", "Juniper charges EUR 80 an hour; museums pay EUR 60.", "profile", "lane:work"),
        fact(125, "calls", "Juniper takes no calls before eleven.", "preference", "lane:work"),
        fact(47, "museum-request", "Saltmarsh Museum asked for an offer on visitor counts.", "event", "lane:work"),
        fact(17, "museum-offer", "Juniper offered Saltmarsh Museum eight days of work.", "event", "lane:work"),
        fact(82, "beeswax-goal", "Beeswax finds out why subscribers cancel their candle boxes.", "decision", BEESWAX),
        fact(58, "beeswax-cause", "Two thirds of the cancelled candle boxes follow a late parcel.", "fact", BEESWAX),
        fact(41, "beeswax-survey", "Grindle & Wick pays for a second survey of 400 subscribers.", "event", BEESWAX),
        fact(100, "tea", "Juniper drinks oolong and writes best before breakfast.", "preference", "lane:personal"),
        fact(28, "garden", "The plot in the community garden stays for two more seasons.", "fact", "lane:personal"),
        fact(8, "sister", sister, "event", "lane:personal"),
        fact(85, "course", "Juniper takes an evening course in Bayesian statistics.", "event", "lane:school"),
        fact(36, "essay", "The course essay is about partial pooling of small harbours.", "fact", "lane:school"),
        fact(9, "grade", "The essay on partial pooling passed with distinction.", "event", "lane:school"),
    ]


def _friction(on: Calendar) -> list[Entry]:
    return [
        Entry(
            on.at(3, 21),
            "friction",
            {
                "happened": "The import of the harbour calendar lost the local holidays.",
                "expected": "Every row of the calendar arrives.",
                "category": "tool",
                "artifact": "calendar.csv: 365 rows read, 351 rows written, 14 skipped: bad date",
                "scope": PROJECT,
            },
        )
    ]
