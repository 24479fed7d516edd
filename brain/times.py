"""Instants and intervals: the one input grammar, days in a zone, and what is visible on both time axes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from brain.errors import InvalidInput

FIRST_YEAR = 1900
LAST_YEAR = 2200
LONGEST_AGE = timedelta(days=36525)

_DAY_FORM = "YYYY-MM-DD"
_INSTANT_FORM = "YYYY-MM-DD or RFC 3339 with an offset such as 2026-03-01T09:30:00Z"
_SINCE_FORM = f"{_INSTANT_FORM}, or an age such as 7d, 12h, 30m or 2w"

_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?"
_OFFSET = r"(?:[Zz]|(?P<sign>[+-])(?P<offset_hour>[0-9]{2}):(?P<offset_minute>[0-9]{2}))"
_GRAMMAR = re.compile(rf"{_DATE}(?P<clock>[Tt]{_TIME}{_OFFSET})?")
_DAY_GRAMMAR = re.compile(_DATE)
_AGE = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[mhdw])")
_AGE_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}

# Only for the wording of a refusal: nothing that matches here is ever accepted.
_NEAR_MISSES = [
    (re.compile(r"[A-Za-z ]+"), "is a word, not a date"),
    (re.compile(r"[0-9]{4}-?[Ww][0-9]{2}(?:-?[0-9])?"), "is a week date"),
    (re.compile(r"[0-9]{8}(?:[Tt].*)?"), "is in basic format, without hyphens"),
    (re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?"), "is a bare number"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"), "has no offset"),
    (re.compile(r".*\.[0-9]{7,}(?:[Zz]|[+-].*)?"), "has more than six fractional digits"),
]
_LONGEST_INPUT = 64

_ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_ZONE_TRAPS = re.compile(r"(?:posix|right)/.*|localtime|posixrules|Factory")


def parse_instant(text: str, *, field: str, zone: tzinfo = UTC) -> datetime:
    """Read a date or an RFC 3339 instant and return it in UTC.

    A date means the first instant of that day in `zone`. Lower-case `t` and `z` are accepted, as RFC 3339 allows.
    Raises InvalidInput, naming `field`, for anything else.
    """
    return _instant(text, field, zone, _INSTANT_FORM)


def parse_day(text: str, *, field: str) -> date:
    """Read a calendar day, YYYY-MM-DD, without any zone. Raises InvalidInput."""
    match = _match(_DAY_GRAMMAR, text)
    if match is None:
        _refuse(field, _near_miss(text), _DAY_FORM)
    return _day(match, field, _DAY_FORM)


def parse_since(text: str, *, field: str, now: datetime, zone: tzinfo = UTC) -> datetime:
    """Read what `parse_instant` reads, or an age before `now` in minutes, hours, days or weeks (30m, 12h, 7d, 2w).

    An age is elapsed time: 7d is 168 hours, also across a clock change. Raises InvalidInput for an age of more than
    100 years or one that reaches before 1900.
    """
    match = _match(_AGE, text)
    if match is None:
        return _instant(text, field, zone, _SINCE_FORM)
    count, unit = int(match["count"]), _AGE_UNITS[match["unit"]]
    if count > LONGEST_AGE // unit:
        _refuse(field, "is an age of more than 100 years", _SINCE_FORM)
    return _in_range(_aware(now).astimezone(UTC) - count * unit, field, _SINCE_FORM)


def format_instant(instant: datetime) -> str:
    """Write an aware datetime as RFC 3339 in UTC with `Z`; six fractional digits, or none when they are zero."""
    written = _aware(instant).astimezone(UTC)
    precision = "microseconds" if written.microsecond else "seconds"
    return written.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def local_day(instant: datetime, zone: tzinfo) -> date:
    """Return the calendar day that a clock in `zone` shows at `instant`."""
    return _aware(instant).astimezone(zone).date()


def days_between(earlier: datetime, later: datetime, zone: tzinfo) -> int:
    """Count whole calendar days in `zone`: 1 from yesterday 23:59 to today 00:01, negative when reversed."""
    return (local_day(later, zone) - local_day(earlier, zone)).days


def zone(name: str) -> ZoneInfo:
    """Look up an IANA time zone. Raises InvalidInput, field `time_zone`.

    Names that depend on the machine (`localtime`) or that count leap seconds (`right/…`) are refused.
    """
    if isinstance(name, str) and _ZONE_NAME.fullmatch(name) and not _ZONE_TRAPS.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise InvalidInput("time_zone must be an IANA zone name such as Europe/Lisbon or UTC.", field="time_zone")


def _refuse(field: str, problem: str, form: str) -> NoReturn:
    raise InvalidInput(f"{field} {problem}; write {form}.", field=field)


def _match(grammar: re.Pattern[str], text: object) -> re.Match[str] | None:
    return grammar.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST_INPUT else None


def _near_miss(text: object) -> str:
    """Say what a refused text looks like, without repeating it."""
    if not isinstance(text, str):
        return "is not text"
    if not text.isascii():
        return "has characters other than ASCII"
    return next((problem for shape, problem in _NEAR_MISSES if _match(shape, text)), "does not have the accepted form")


def _instant(text: str, field: str, zone: tzinfo, form: str) -> datetime:
    match = _match(_GRAMMAR, text)
    if match is None:
        _refuse(field, _near_miss(text), form)
    day = _day(match, field, form)
    instant = _clock(match, day, field, form) if match["clock"] else _day_start(day, zone)
    return _in_range(instant, field, form)


def _day(match: re.Match[str], field: str, form: str) -> date:
    """Build the day; the year is checked as written, so that no conversion can overflow."""
    if not FIRST_YEAR <= int(match["year"]) <= LAST_YEAR:
        _refuse(field, f"is outside the years {FIRST_YEAR} to {LAST_YEAR}", form)
    try:
        return date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        _refuse(field, "names a day that does not exist", form)


def _clock(match: re.Match[str], day: date, field: str, form: str) -> datetime:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
    if second == 60:
        _refuse(field, "names a leap second", form)
    if hour == 24:
        _refuse(field, "names the hour 24, which is 00:00 of the next day", form)
    if hour > 23 or minute > 59 or second > 59:
        _refuse(field, "names a time of day that does not exist", form)
    microsecond = int((match["fraction"] or "").ljust(6, "0"))
    return datetime(day.year, day.month, day.day, hour, minute, second, microsecond, _offset(match, field, form))


def _offset(match: re.Match[str], field: str, form: str) -> tzinfo:
    if match["sign"] is None:
        return UTC
    hours, minutes = int(match["offset_hour"]), int(match["offset_minute"])
    if hours > 23 or minutes > 59:
        _refuse(field, "has an offset that does not exist", form)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if match["sign"] == "-" else offset)


def _day_start(day: date, zone: tzinfo) -> datetime:
    """Return the first instant of a day in UTC.

    Midnight that occurs twice means its first occurrence. Midnight inside a spring gap means the instant at which the
    clocks jump, which is the first one that exists.
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    early, late = midnight.replace(fold=1).astimezone(UTC), midnight.astimezone(UTC)
    if early >= late:
        return late
    # In a gap (PEP 495) fold=1 lands before the jump and fold=0 at or after it: bisect for the jump, in whole seconds.
    after = late.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        early, late = (early, middle) if middle.astimezone(zone).utcoffset() == after else (middle, late)
    return late


def _in_range(instant: datetime, field: str, form: str) -> datetime:
    written = instant.astimezone(UTC)
    if not FIRST_YEAR <= written.year <= LAST_YEAR:
        _refuse(field, f"is outside the years {FIRST_YEAR} to {LAST_YEAR} in UTC", form)
    return written


def _aware(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        raise ValueError("a datetime inside the brain must carry its offset")
    return instant


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open stretch of valid time, [start, end); None is unbounded. Raises InvalidInput unless start < end."""

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        for bound in (self.start, self.end):
            if bound is not None:
                _aware(bound)
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise InvalidInput("valid_to must be later than valid_from.", field="valid_to")

    def contains(self, instant: datetime) -> bool:
        """Tell whether the instant is inside: the start is, the end is not."""
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)

    def overlaps(self, other: Interval) -> bool:
        """Tell whether the two have an instant in common; touching ends have none."""
        return _begins_before(self.start, other.end) and _begins_before(other.start, self.end)

    def without(self, other: Interval) -> tuple[Interval, ...]:
        """Return what is left of this interval outside `other`: nothing, a left piece, a right piece or both."""
        if not self.overlaps(other):
            return (self,)
        pieces = []
        if other.start is not None and (self.start is None or self.start < other.start):
            pieces.append(Interval(self.start, other.start))
        if other.end is not None and (self.end is None or other.end < self.end):
            pieces.append(Interval(other.end, self.end))
        return tuple(pieces)


def _begins_before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


@dataclass(frozen=True, slots=True)
class Assertion:
    """One row of the log of one key: from `known_from` on, `doc` holds over `valid`, or nothing does (a tombstone).

    `doc` is the row's number, unique and growing in the order of insertion.
    """

    doc: int
    known_from: datetime
    valid: Interval
    tombstone: bool = False


def visible(assertions: Iterable[Assertion], as_of: datetime, valid_at: datetime) -> Assertion | None:
    """Return the assertion of one key that is visible at a point of both axes, by brute force over the log.

    Of the assertions known by `as_of` whose validity contains `valid_at`, the newest known wins, ties going to the
    later row; a tombstone hides everything. This states the rule, so it shares no code with `overlay`.
    """
    newest: Assertion | None = None
    for assertion in assertions:
        if assertion.known_from > as_of:
            continue
        if assertion.valid.start is not None and valid_at < assertion.valid.start:
            continue
        if assertion.valid.end is not None and valid_at >= assertion.valid.end:
            continue
        if newest is None or (assertion.known_from, assertion.doc) > (newest.known_from, newest.doc):
            newest = assertion
    return None if newest is None or newest.tombstone else newest


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Where `doc` is visible: system time [known_from, known_to) times valid time; known_to None is still open."""

    doc: int
    known_from: datetime
    known_to: datetime | None
    valid: Interval

    @property
    def empty(self) -> bool:
        """Tell whether it was closed at the instant that opened it, so that no `as_of` can ever see it."""
        return self.known_to == self.known_from

    def contains(self, as_of: datetime, valid_at: datetime) -> bool:
        """Tell whether the point of both axes is inside."""
        known = self.known_from <= as_of and (self.known_to is None or as_of < self.known_to)
        return known and self.valid.contains(valid_at)

    @property
    def present(self) -> Interval | None:
        """When a reader of the present, who asks at every instant about that instant, sees it; None is never."""
        start = self.known_from if self.valid.start is None else max(self.known_from, self.valid.start)
        ends = [end for end in (self.known_to, self.valid.end) if end is not None]
        end = min(ends, default=None)
        return None if end is not None and end <= start else Interval(start, end)

    @property
    def timed(self) -> bool:
        """Tell whether it comes or goes for a reader of the present as time passes, and not with a write."""
        seen = self.present
        return seen is not None and (seen.start != self.known_from or seen.end != self.known_to)


@dataclass(frozen=True, slots=True)
class Overlay:
    """What one new assertion changes: rectangles to close (known_to is set) and rectangles to open.

    A closed rectangle that is `empty` is to be removed, not kept.
    """

    closed: tuple[Rectangle, ...]
    opened: tuple[Rectangle, ...]


def overlay(open_rectangles: Iterable[Rectangle], assertion: Assertion) -> Overlay:
    """Lay one assertion over the open rectangles of its key.

    Every rectangle that overlaps its validity is closed at its `known_from`, what sticks out on either side opens
    again under its own doc, and the assertion opens its own rectangle unless it is a tombstone. The assertion must be
    the last of its key by (known_from, doc); one that is known earlier needs a rebuild with `rectangles`. Raises
    ValueError when an open rectangle is newer than the assertion, or is closed.
    """
    closed: list[Rectangle] = []
    opened: list[Rectangle] = []
    for rectangle in open_rectangles:
        if rectangle.known_to is not None or rectangle.known_from > assertion.known_from:
            raise ValueError("overlay takes open rectangles and the newest assertion of their key")
        if rectangle.valid.overlaps(assertion.valid):
            closed.append(replace(rectangle, known_to=assertion.known_from))
            opened.extend(_open(rectangle.doc, assertion, piece) for piece in rectangle.valid.without(assertion.valid))
    if not assertion.tombstone:
        opened.append(_open(assertion.doc, assertion, assertion.valid))
    return Overlay(tuple(closed), tuple(opened))


def _open(doc: int, assertion: Assertion, valid: Interval) -> Rectangle:
    return Rectangle(doc, assertion.known_from, None, valid)


def rectangles(assertions: Iterable[Assertion]) -> list[Rectangle]:
    """Derive from the log of one key, in any order, where each assertion is visible.

    The rectangles are disjoint and not empty, and come ordered by system time, doc and valid time. The cost is the
    number of assertions times the number of open rectangles.
    """
    done: list[Rectangle] = []
    open_now: list[Rectangle] = []
    for assertion in sorted(assertions, key=lambda row: (row.known_from, row.doc)):
        change = overlay(open_now, assertion)
        done.extend(rectangle for rectangle in change.closed if not rectangle.empty)
        open_now = [*still_open(open_now, change.closed), *change.opened]
    return sorted(done + open_now, key=_rectangle_order)


def still_open(before: Sequence[Rectangle], closed: Iterable[Rectangle]) -> list[Rectangle]:
    """Return the open rectangles that an overlay did not close."""
    gone = {replace(rectangle, known_to=None) for rectangle in closed}
    return [rectangle for rectangle in before if rectangle not in gone]


def _rectangle_order(rectangle: Rectangle) -> tuple[datetime, int, bool, datetime]:
    start = rectangle.valid.start
    return rectangle.known_from, rectangle.doc, start is not None, start or rectangle.known_from
