"""The trust order and the rule that weighs claims about one question.

`constraint > record > pin > wiki > memory > recall`. A claim is a value read from one row (or recalled by the model),
with the event time at which it held. Values are compared by `normalise`.

| highest stored layer | what disagrees with its newest claim                 | outcome                                |
| -------------------- | ---------------------------------------------------- | -------------------------------------- |
| none                 | (no claim at all)                                    | empty, no winner                       |
| recall only          | (anything)                                           | unsupported, no winner                 |
| any                  | nothing, in any layer                                | agreed, the highest layer is cited     |
| any                  | only recall, whatever its date                       | settled, recall flagged                |
| any                  | same layer, older                                    | settled for the newer, older flagged   |
| any                  | same layer, same event time, or either date unknown  | contested; lower layers break no tie   |
| constraint, record   | lower layer, older or of the same event time         | settled, lower flagged                 |
| constraint, record   | lower layer, newer                                   | settled, flag asks to check the record |
| constraint, record   | lower layer, either date unknown                     | settled, flag says so                  |
| pin, wiki            | lower layer, older                                   | settled, lower flagged                 |
| pin, wiki            | lower layer, newer or of the same event time         | contested                              |
| pin, wiki            | lower layer, either date unknown                     | contested                              |

First the highest layer settles its own newest claim, then the layers below are held against that claim alone. So of
two pins that disagree the newer one speaks, and a memory newer than that pin contests it, even when the memory repeats
the older pin; a memory between the two does not. Every lower claim counts by itself: one that a still newer claim of
its own layer contradicts contests a pin all the same.

*Newer* is strict everywhere. What is rewritten in place, a pin or a page, has to be newer than each lower claim that
disagrees: a tie in event time contests it. A date that is unknown shows nothing newer and nothing older, so it never
decides in anybody's favour. Recall takes no part in any of this: it can be flagged, and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Literal


class Layer(StrEnum):
    """The layers that can make a claim, the most trusted first."""

    constraint = "constraint"
    record = "record"
    pin = "pin"
    wiki = "wiki"
    memory = "memory"
    recall = "recall"


Outcome = Literal["agreed", "settled", "contested", "unsupported", "empty"]

_RANK = {layer: rank for rank, layer in enumerate(Layer)}
_AUTHORITATIVE = (Layer.constraint, Layer.record)
_COMPILED = (Layer.pin, Layer.wiki)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one source says: its layer, the value, the event time (aware, or None when unknown) and the ref.

    Raises ValueError for a layer that makes no claims, a value that is not text, or a naive time.
    """

    layer: Layer
    value: str
    at: datetime | None
    ref: str
    normal: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.value, str):
            raise ValueError("a claim's value must be text")
        if self.at is not None and self.at.utcoffset() is None:
            raise ValueError("a claim's time must carry its offset")
        object.__setattr__(self, "layer", Layer(self.layer))
        object.__setattr__(self, "normal", normalise(self.value))


@dataclass(frozen=True, slots=True)
class Flag:
    """A claim that disagrees with the winner, and what to do; `newer` when it held later than the winner."""

    ref: str
    message: str
    newer: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, with its evidence.

    `winner` is None unless the outcome is agreed or settled. `sides` groups the stored claims by value, the most
    trusted and newest first. `agreeing` and `disagreeing` are the refs for and against the winner; without a winner
    nothing agrees, and a contested answer lists every stored ref as disagreeing.
    """

    outcome: Outcome
    winner: Claim | None
    flags: tuple[Flag, ...]
    advice: str
    reason: str
    sides: tuple[tuple[Claim, ...], ...] = ()
    agreeing: tuple[str, ...] = ()
    disagreeing: tuple[str, ...] = ()


def weigh(claims: Iterable[Claim]) -> Verdict:
    """Weigh claims about one question by the trust order; the order in which they are given has no influence."""
    ordered = sorted(claims, key=_trust_order)
    if not ordered:
        return Verdict("empty", None, (), "Say that nothing is known about this.", "There is no claim.")
    stored = [claim for claim in ordered if claim.layer is not Layer.recall]
    if not stored:
        return Verdict(
            "unsupported",
            None,
            (),
            "Say that this is unsupported by anything stored.",
            "Only the model's recall says so.",
        )
    winner, *rivals = _standing([claim for claim in stored if claim.layer is stored[0].layer])
    disputed = [claim for claim in rivals if claim.normal != winner.normal]
    if disputed:
        return _contested(winner, disputed, stored, "of the same layer, and not known to be older")
    if winner.layer in _COMPILED:
        contesting = [claim for claim in stored if claim.normal != winner.normal and not _older(claim, winner)]
        if contesting:
            return _contested(winner, contesting, stored, "not known to be older")
    return _decided(winner, ordered, stored)


def _trust_order(claim: Claim) -> tuple[object, ...]:
    """Sort by layer, then dated before undated, then newest first; ref and value only make the order total."""
    age = _EPOCH - claim.at if claim.at is not None else None
    return (_RANK[claim.layer], age is None, age or _EPOCH - _EPOCH, claim.ref, claim.value)


def _standing(layer: Sequence[Claim]) -> list[Claim]:
    """Return the claims of one layer that no other is known to be newer than: the newest, and all without a date."""
    newest = layer[0].at
    return [claim for claim in layer if claim.at is None or claim.at == newest]


def _older(claim: Claim, other: Claim) -> bool:
    return claim.at is not None and other.at is not None and claim.at < other.at


def _contested(first: Claim, against: Sequence[Claim], stored: Sequence[Claim], why: str) -> Verdict:
    others = ", ".join(_dated(claim) for claim in against)
    return Verdict(
        outcome="contested",
        winner=None,
        flags=(),
        advice="Ask the user which side holds, showing both with their dates; then correct the other side.",
        reason=f"{_dated(first)} is contradicted by {others}: {why}.",
        sides=_sides(stored),
        disagreeing=tuple(claim.ref for claim in stored),
    )


def _decided(winner: Claim, ordered: Sequence[Claim], stored: Sequence[Claim]) -> Verdict:
    flags = tuple(_flag(claim, winner) for claim in ordered if claim.normal != winner.normal)
    basis = f"{_dated(winner)} speaks for the highest layer"
    return Verdict(
        outcome="settled" if flags else "agreed",
        winner=winner,
        flags=flags,
        advice=_advice(winner, flags),
        reason=f"{basis} and outweighs what disagrees." if flags else f"{basis} and nothing disagrees.",
        sides=_sides(stored),
        agreeing=tuple(claim.ref for claim in ordered if claim.normal == winner.normal),
        disagreeing=tuple(flag.ref for flag in flags),
    )


def _flag(claim: Claim, winner: Claim) -> Flag:
    if claim.layer is Layer.recall:
        return Flag(claim.ref, "disagrees; correct it: recall never beats a stored claim", newer=False)
    if claim.layer is winner.layer:
        return Flag(claim.ref, f"disagrees; correct it: older than {winner.ref} in the same layer", newer=False)
    if _older(winner, claim):
        return Flag(
            claim.ref, f"disagrees; correct it; it is newer, so the {winner.layer} may need an update", newer=True
        )
    if claim.at is None or winner.at is None:
        return Flag(claim.ref, "disagrees; correct it; a date is unknown, so check which is newer", newer=False)
    return Flag(claim.ref, "disagrees; correct it", newer=False)


def _advice(winner: Claim, flags: Sequence[Flag]) -> str:
    advice = f"Use {winner.ref}."
    if flags:
        advice = f"Use {winner.ref} and correct {', '.join(flag.ref or 'your recall' for flag in flags)}."
    if any(flag.newer for flag in flags):
        advice += f" Ask the user whether {winner.ref} needs an update."
    return advice


def _sides(claims: Iterable[Claim]) -> tuple[tuple[Claim, ...], ...]:
    sides: dict[str, list[Claim]] = {}
    for claim in claims:
        sides.setdefault(claim.normal, []).append(claim)
    return tuple(tuple(side) for side in sides.values())


def _dated(claim: Claim) -> str:
    if claim.at is None:
        return f"{claim.ref} (date unknown)"
    return f"{claim.ref} ({claim.at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z)"


# Normalisation. A false disagreement is shown to somebody; a false agreement is not. So whatever has two readings stays
# as written, and a token counts as a number or a date only when it stands alone.

_ALIKE = str.maketrans({"\u2010": "-", "\u2212": "-", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_LEFT = r"(?<![^\s(\[\"'])"
_RIGHT = r"(?=[)\].,;:!?\"']*(?:\s|\Z))"

_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = [
    re.compile(
        rf"{_LEFT}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?(?: of)?[ -]{_MONTH},?[ -](?P<year>[0-9]{{4}}){_RIGHT}"
    ),
    re.compile(rf"{_LEFT}{_MONTH} (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,? (?P<year>[0-9]{{4}}){_RIGHT}"),
    re.compile(
        rf"{_LEFT}(?P<year>[0-9]{{4}})(?P<mark>[/-])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}}){_RIGHT}"
    ),
]
_DAY_OR_MONTH_FIRST = re.compile(
    rf"{_LEFT}(?P<one>[0-9]{{1,2}})(?P<mark>[/.-])(?P<two>[0-9]{{1,2}})(?P=mark)(?P<year>[0-9]{{4}}){_RIGHT}"
)

_PLAIN = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_GROUPED = r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?"
_EUROPEAN = r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+"
_DECIMAL_COMMA = r"(?:0|[1-9][0-9]*),[0-9]{1,2}"
_NUMBER = rf"(?P<number>{_GROUPED}|{_EUROPEAN}|{_PLAIN})"
_QUANTITY = rf"(?P<number>{_GROUPED}|{_EUROPEAN}|{_DECIMAL_COMMA}|{_PLAIN})"

# Common ISO 4217 codes, without those that are words in this kind of text (ALL, PHP, TOP, TRY).
_CODES = (
    "aed", "ars", "aud", "bgn", "brl", "cad", "chf", "clp", "cny", "cop", "czk", "dkk", "egp", "eur", "gbp", "hkd",
    "huf", "idr", "ils", "inr", "isk", "jpy", "kes", "krw", "mxn", "myr", "ngn", "nok", "nzd", "pln", "ron", "rub",
    "sar", "sek", "sgd", "thb", "twd", "uah", "usd", "vnd", "zar",
)  # fmt: skip
_CURRENCIES = {code: code for code in _CODES} | {
    "us$": "usd", "$": "usd", "€": "eur", "euro": "eur", "euros": "eur", "£": "gbp", "₹": "inr", "₩": "krw", "₽": "rub",
    "₴": "uah", "₫": "vnd", "₪": "ils", "฿": "thb", "¥": "¥",
}  # fmt: skip
_SHARED_SYMBOLS = {"$": ("aud", "cad", "hkd", "mxn", "nzd", "sgd", "twd", "clp", "cop", "ars"), "¥": ("cny", "jpy")}
_CURRENCY = "|".join(re.escape(name) for name in sorted(_CURRENCIES, key=len, reverse=True))
_MONEY = re.compile(
    rf"{_LEFT}(?P<minus>-)?(?:(?P<before>{_CURRENCY}) ?(?P<inner_minus>-)?)?{_QUANTITY}"
    rf"(?: ?(?P<after>{_CURRENCY}))?{_RIGHT}"
)
_ONE_OR_THOUSAND = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{3}")
_PERCENT = re.compile(rf"{_LEFT}(?P<minus>-)?{_QUANTITY} ?%{_RIGHT}")
_ALONE = re.compile(rf"(?P<minus>-)?{_NUMBER}(?P<unit> [^\W\d_]+)?")
_SEPARATED = re.compile(rf"{_LEFT}(?P<minus>-)?(?P<number>{_GROUPED}|{_EUROPEAN}){_RIGHT}")


def normalise(value: str) -> str:
    """Return the form in which two values are compared; idempotent, never raises, not meant for display.

    - Unicode: NFKC, casefold, format characters dropped, decimal digits of any script as ASCII, white space collapsed,
      typographic quotes, hyphen and minus as their ASCII twins.
    - Dates: `1 March 2026`, `March 1, 2026`, `2026/3/1` are 2026-03-01. `13/02/2026` has one reading and is taken;
      `01/02/2026` has two and stays as written.
    - Money: symbol or ISO code on either side, `EUR 1,200` = `€1200.00` = `1.200,00 eur`. A bare `$` is USD. A decimal
      comma needs a currency or a percent sign (`12,50 €`). `€1.200` could be 1.2 or 1200 and keeps its digits.
    - Numbers: exact, on digits, never floats. `1,200.00` = `1200`, `1.200,50` = `1200.5`. Without a currency `1.200`
      is the decimal 1.2. This holds for a number alone, with a unit, or as a percentage; inside a sentence only
      thousands separators go, so that `Python 3.10` is not `Python 3.1`. A leading zero (`007`) makes it a label.
    """
    text = _SEPARATED.sub(lambda match: (match["minus"] or "") + _ungrouped(match["number"]), _fold(value))
    for shape in _DATES:
        text = shape.sub(_iso_date, text)
    text = _DAY_OR_MONTH_FIRST.sub(_only_reading, text)
    text = _MONEY.sub(_money, text)
    text = _PERCENT.sub(lambda match: _exact(match) + "%", text)
    alone = _ALONE.fullmatch(text)
    return text if alone is None else _exact(alone) + (alone["unit"] or "")


def _fold(value: str) -> str:
    """Fold case, compatibility forms and white space until nothing changes: one step can enable another."""
    folded = _fold_once(value)
    while folded != value:
        value, folded = folded, _fold_once(folded)
    return folded


def _fold_once(value: str) -> str:
    text = "".join(char for char in value if unicodedata.category(char) != "Cf")
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_ALIKE)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(char, char)) for char in text)
    return " ".join(text.split())


def _iso_date(match: re.Match[str]) -> str:
    month = _MONTHS.get(match["month"][:3]) or int(match["month"])
    return _day(match["year"], month, match["day"]) or match[0]


def _only_reading(match: re.Match[str]) -> str:
    """Read 13/02/2026 and 05/05/2026, which have one reading, and leave 01/02/2026, which has two."""
    one, two = match["one"], match["two"]
    readings = {_day(match["year"], one, two), _day(match["year"], two, one)} - {None}
    return readings.pop() or match[0] if len(readings) == 1 else match[0]


def _day(year: str, month: str | int, day: str) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _money(match: re.Match[str]) -> str:
    currency = _one_currency(match["before"], match["after"])
    if currency is None or (match["minus"] and match["inner_minus"]):
        return match[0]
    sign = match["minus"] or match["inner_minus"] or ""
    if _ONE_OR_THOUSAND.fullmatch(match["number"]):
        return f"{currency}={sign}{match['number']}"
    return f"{currency}={_signed(sign, match['number'])}"


def _one_currency(before: str | None, after: str | None) -> str | None:
    """Name the currency when the marks on both sides agree, as in `$5 USD` and `$5 CAD`."""
    named = {_CURRENCIES[mark] for mark in (before, after) if mark}
    if before in _SHARED_SYMBOLS and after in _SHARED_SYMBOLS[before]:
        return after
    return named.pop() if len(named) == 1 else None


def _exact(match: re.Match[str]) -> str:
    return _signed(match["minus"] or "", match["number"])


def _signed(sign: str, number: str) -> str:
    integer, _, fraction = _ungrouped(number).partition(".")
    fraction = fraction.rstrip("0")
    exact = f"{integer}.{fraction}" if fraction else integer
    return exact if exact == "0" else sign + exact


def _ungrouped(number: str) -> str:
    """Drop thousands separators and write the decimal mark as a dot; digits stay as they are."""
    if re.fullmatch(rf"{_EUROPEAN}|{_DECIMAL_COMMA}", number):
        return number.replace(".", "").replace(",", ".")
    return number.replace(",", "")
