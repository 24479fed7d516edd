"""The input grammar, days in a zone, and the overlay of assertions against the brute-force rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import InvalidInput
from brain.times import (
    Assertion,
    Interval,
    Rectangle,
    days_between,
    format_instant,
    local_day,
    overlay,
    parse_day,
    parse_instant,
    parse_since,
    rectangles,
    visible,
    zone,
)

NEW_YORK = ZoneInfo("America/New_York")
KATHMANDU = ZoneInfo("Asia/Kathmandu")
NOW = datetime(2026, 3, 15, 12, 0, tzinfo=UTC)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def refusal(text: object, **options: object) -> str:
    """The sentence with which parse_instant refuses."""
    with pytest.raises(InvalidInput) as caught:
        parse_instant(text, field="occurred_at", **options)  # type: ignore[arg-type]
    assert caught.value.field == "occurred_at"
    return caught.value.message


# --- the grammar -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01", utc(2026, 3, 1)),
        ("2026-03-01T09:30:00Z", utc(2026, 3, 1, 9, 30)),
        ("2026-03-01t09:30:00z", utc(2026, 3, 1, 9, 30)),
        ("2026-03-01T09:30:00+05:45", utc(2026, 3, 1, 3, 45)),
        ("2026-03-01T23:30:00-05:00", utc(2026, 3, 2, 4, 30)),
        ("2026-03-01T09:30:00-00:00", utc(2026, 3, 1, 9, 30)),
        ("2026-03-01T09:30:00.5Z", utc(2026, 3, 1, 9, 30, 0, 500_000)),
        ("2026-03-01T09:30:00.000001Z", utc(2026, 3, 1, 9, 30, 0, 1)),
        ("2024-02-29", utc(2024, 2, 29)),
        ("1900-01-01T00:00:00Z", utc(1900, 1, 1)),
        ("2200-12-31T23:59:59.999999Z", utc(2200, 12, 31, 23, 59, 59, 999_999)),
    ],
)
def test_dates_and_rfc3339_instants_are_read_as_utc(text: str, expected: datetime) -> None:
    instant = parse_instant(text, field="occurred_at")
    assert instant == expected
    assert instant.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2026-03-08T02:30", "has no offset"),
        ("2026-11-01T01:30", "has no offset"),
        ("2026-03-08T02:30:00", "has no offset"),
        ("2026-03-08 02:30:00.25", "has no offset"),
        ("2026-03-08 02:30:00Z", "accepted form"),
        ("2026-03-08T02:30Z", "accepted form"),
        ("today", "is a word"),
        ("now", "is a word"),
        ("infinity", "is a word"),
        ("epoch", "is a word"),
        ("-infinity", "accepted form"),
        ("next monday", "is a word"),
        ("2026-W01-1", "is a week date"),
        ("2026W011", "is a week date"),
        ("20260101", "is in basic format"),
        ("20260101T093000Z", "is in basic format"),
        ("1767225600", "is a bare number"),
        ("1767225600.5", "is a bare number"),
        ("2016-12-31T23:59:60Z", "names a leap second"),
        ("2026-03-01T24:00:00Z", "names the hour 24"),
        ("2026-03-01T25:00:00Z", "time of day that does not exist"),
        ("2026-03-01T09:60:00Z", "time of day that does not exist"),
        ("2026-03-01T09:00:61Z", "time of day that does not exist"),
        ("2026-03-01T09:30:00.1234567Z", "more than six fractional digits"),
        ("2026-03-01T09:30:00.Z", "accepted form"),
        ("2026-03-01T09:30:00,5Z", "accepted form"),
        ("2026-02-30", "day that does not exist"),
        ("2026-13-01", "day that does not exist"),
        ("2025-02-29", "day that does not exist"),
        ("2026-00-10T00:00:00Z", "day that does not exist"),
        ("1899-12-31", "outside the years 1900 to 2200"),
        ("2201-01-01", "outside the years 1900 to 2200"),
        ("0001-01-01T00:00:00+05:00", "outside the years 1900 to 2200"),
        ("9999-12-31T23:59:00-05:00", "outside the years 1900 to 2200"),
        ("10000-01-01", "accepted form"),
        ("-0044-03-15", "accepted form"),
        ("1900-01-01T00:00:00+00:01", "outside the years 1900 to 2200 in UTC"),
        ("2200-12-31T23:59:00-00:01", "outside the years 1900 to 2200 in UTC"),
        ("2026-03-01T09:30:00+24:00", "offset that does not exist"),
        ("2026-03-01T09:30:00+05:60", "offset that does not exist"),
        ("2026-03-01T09:30:00+0545", "accepted form"),
        ("2026-03-01T09:30:00+05", "accepted form"),
        ("2026-03-01T09:30:00[Europe/Paris]", "accepted form"),
        ("٢٠٢٦-٠١-٠١", "other than ASCII"),
        ("2026‑03‑01", "other than ASCII"),
        ("2026-03-01\n", "accepted form"),
        (" 2026-03-01", "accepted form"),
        ("", "accepted form"),
        ("2026-060", "accepted form"),
        ("2026-3-1", "accepted form"),
        ("01/02/2026", "accepted form"),
        ("2026-03-01T09:30:00Z; DROP TABLE memory", "accepted form"),
        ("9" * 100_000, "accepted form"),
        ("\ud800", "other than ASCII"),
        (1767225600, "is not text"),
        (None, "is not text"),
    ],
)
def test_everything_else_is_refused_in_one_sentence_that_shows_the_accepted_form(text: object, problem: str) -> None:
    message = refusal(text)
    assert message.startswith("occurred_at ")
    assert problem in message
    assert message.endswith("write YYYY-MM-DD or RFC 3339 with an offset such as 2026-03-01T09:30:00Z.")
    assert "\n" not in message
    assert len(message) < 200


def test_a_naive_datetime_is_refused_whatever_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine_zone in ("America/New_York", "Asia/Kathmandu"):
        monkeypatch.setenv("TZ", machine_zone)
        assert "has no offset" in refusal("2026-03-08T02:30")
        assert "has no offset" in refusal("2026-11-01T01:30", zone=NEW_YORK)


instants = st.datetimes(datetime(1900, 1, 3), datetime(2200, 12, 29))
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(instants, offsets)
def test_any_instant_with_an_offset_reads_as_the_standard_library_reads_it(wall: datetime, offset: timezone) -> None:
    written = wall.replace(tzinfo=offset).isoformat()
    assert parse_instant(written, field="at") == datetime.fromisoformat(written)


@given(instants)
def test_an_instant_written_out_reads_back_the_same(wall: datetime) -> None:
    instant = wall.replace(tzinfo=UTC)
    written = format_instant(instant)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", written)
    assert parse_instant(written, field="at") == instant


@given(st.text(alphabet="0123456789-+:.TtZzWw \n٢é", max_size=40) | st.text(max_size=40))
def test_no_text_raises_anything_but_invalid_input(text: str) -> None:
    assert field_of_refusal(lambda: parse_instant(text, field="at")) in (None, "at")
    assert field_of_refusal(lambda: parse_day(text, field="due")) in (None, "due")
    assert field_of_refusal(lambda: parse_since(text, field="since", now=NOW)) in (None, "since")


def field_of_refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except InvalidInput as refused:
        return refused.field
    return None


# --- dates, zones and days ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "zone_name", "expected"),
    [
        ("2026-03-01", "America/New_York", utc(2026, 3, 1, 5)),
        ("2026-07-01", "America/New_York", utc(2026, 7, 1, 4)),
        ("2026-03-01", "Asia/Kathmandu", utc(2026, 2, 28, 18, 15)),
        ("2026-03-01", "Pacific/Kiritimati", utc(2026, 2, 28, 10)),
        # Midnight happens twice: clocks go back from 01:00 to 00:00, and the day began with the first one.
        ("2025-11-02", "America/Havana", utc(2025, 11, 2, 4)),
        # Midnight does not happen: clocks jump from 00:00 to 01:00.
        ("2018-11-04", "America/Sao_Paulo", utc(2018, 11, 4, 3)),
        # Nor here, where they jump from 23:30 to 00:30, so that the day begins at 00:30.
        ("1919-03-31", "America/Toronto", utc(1919, 3, 31, 4, 30)),
        # A whole day that does not exist begins where the next one does.
        ("2011-12-30", "Pacific/Apia", utc(2011, 12, 30, 10)),
        ("2011-12-31", "Pacific/Apia", utc(2011, 12, 30, 10)),
    ],
)
def test_a_date_is_the_first_instant_of_that_day_in_the_zone(text: str, zone_name: str, expected: datetime) -> None:
    assert parse_instant(text, field="at", zone=ZoneInfo(zone_name)) == expected


def test_a_date_whose_midnight_leaves_the_range_in_utc_is_refused() -> None:
    assert "in UTC" in refusal("1900-01-01", zone=KATHMANDU)
    assert parse_instant("1900-01-01", field="at", zone=NEW_YORK) == utc(1900, 1, 1, 5)


def test_a_written_year_outside_the_range_is_refused_even_when_utc_is_inside() -> None:
    assert "outside the years" in refusal("1899-12-31T23:30:00-01:00")


def test_parse_day_takes_a_calendar_day_and_nothing_else() -> None:
    assert parse_day("2026-03-01", field="due") == date(2026, 3, 1)
    for text in (
        "2026-03-01T00:00:00Z",
        "2026-02-30",
        "1899-12-31",
        "20260301",
        "today",
        "2026-W09-7",
        "٢٠٢٦-٠١-٠١",
        "",
    ):
        with pytest.raises(InvalidInput, match=r"^due .*; write YYYY-MM-DD\.$"):
            parse_day(text, field="due")


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (utc(2026, 3, 1), "2026-03-01T00:00:00Z"),
        (utc(2026, 3, 1, 9, 30, 0, 1), "2026-03-01T09:30:00.000001Z"),
        (utc(2026, 3, 1, 9, 30, 0, 500_000), "2026-03-01T09:30:00.500000Z"),
        (datetime(2026, 3, 1, 1, 0, tzinfo=KATHMANDU), "2026-02-28T19:15:00Z"),
    ],
)
def test_output_is_rfc3339_in_utc_with_z(instant: datetime, expected: str) -> None:
    assert format_instant(instant) == expected


def test_a_naive_datetime_inside_is_a_programming_error() -> None:
    naive = datetime(2026, 3, 1)
    for call in (
        lambda: format_instant(naive),
        lambda: local_day(naive, UTC),
        lambda: Interval(naive, None),
        lambda: parse_since("1d", field="since", now=naive),
    ):
        with pytest.raises(ValueError, match="offset"):
            call()


@pytest.mark.parametrize("zone_name", ["UTC", "Pacific/Kiritimati", "Pacific/Honolulu", "America/New_York"])
def test_days_are_counted_on_the_calendar_of_the_zone(zone_name: str) -> None:
    local = ZoneInfo(zone_name)
    touched = datetime(2026, 3, 7, 23, 30, tzinfo=local)
    now = datetime(2026, 3, 9, 0, 10, tzinfo=local)
    assert local_day(touched.astimezone(UTC), local) == date(2026, 3, 7)
    assert days_between(touched.astimezone(UTC), now.astimezone(UTC), local) == 2
    assert days_between(now, touched, local) == -2


def test_the_two_midnights_around_a_clock_change_are_one_day_apart() -> None:
    before, after = (parse_instant(day, field="at", zone=NEW_YORK) for day in ("2026-03-08", "2026-03-09"))
    assert after - before == timedelta(hours=23)
    assert days_between(before, after, NEW_YORK) == 1


def test_zone_knows_iana_names_and_refuses_everything_else() -> None:
    assert zone("Europe/Lisbon") == ZoneInfo("Europe/Lisbon")
    assert zone("UTC").utcoffset(NOW) == timedelta(0)
    for name in ("", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "localtime", "right/UTC", "America", "a\0b",
                 "\ud800", "tzdata.zi", "Europe/Lisbon\n", "x" * 5000):  # fmt: skip
        with pytest.raises(InvalidInput, match=r"^time_zone must be an IANA zone name") as caught:
            zone(name)
        assert caught.value.field == "time_zone"


# --- ages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", utc(2026, 3, 8, 12)),
        ("12h", utc(2026, 3, 15)),
        ("30m", utc(2026, 3, 15, 11, 30)),
        ("2w", utc(2026, 3, 1, 12)),
        ("0d", NOW),
        ("36525d", utc(1926, 3, 15, 12)),
        ("2026-03-01", utc(2026, 3, 1)),
        ("2026-03-01T09:30:00+01:00", utc(2026, 3, 1, 8, 30)),
    ],
)
def test_since_reads_ages_and_instants(text: str, expected: datetime) -> None:
    assert parse_since(text, field="since", now=NOW) == expected


def test_an_age_is_elapsed_time_across_a_clock_change() -> None:
    now = datetime(2026, 3, 9, 12, tzinfo=NEW_YORK)
    assert parse_since("7d", field="since", now=now, zone=NEW_YORK) == utc(2026, 3, 2, 16)


@pytest.mark.parametrize(
    "text",
    ["36526d", "999999999w", "9" * 50 + "d", "7y", "7D", "-7d", "+7d", "1.5h", "7 d", "7", "d", "٧d", "yesterday"],
)
def test_since_refuses_unbounded_and_unknown_ages(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^since .* or an age such as 7d, 12h, 30m or 2w\.$"):
        parse_since(text, field="since", now=NOW)


def test_an_age_that_reaches_before_1900_is_refused() -> None:
    with pytest.raises(InvalidInput, match="outside the years 1900 to 2200"):
        parse_since("36525d", field="since", now=utc(1999, 1, 1))


# --- intervals ---------------------------------------------------------------------------------------------------


def day(number: int) -> datetime:
    return utc(2026, 1, 1) + timedelta(days=number)


def span(start: int | None, end: int | None) -> Interval:
    return Interval(None if start is None else day(start), None if end is None else day(end))


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 3)])
def test_an_interval_that_ends_before_it_starts_is_refused(start: int, end: int) -> None:
    with pytest.raises(InvalidInput, match="valid_to must be later than valid_from") as caught:
        span(start, end)
    assert caught.value.field == "valid_to"


def test_an_interval_is_half_open() -> None:
    assert span(1, 3).contains(day(1))
    assert span(1, 3).contains(day(2))
    assert not span(1, 3).contains(day(3))
    assert not span(1, 3).contains(day(0))
    assert span(None, None).contains(day(0))
    assert not span(1, 2).overlaps(span(2, 3))
    assert span(1, 3).overlaps(span(2, None))


bounds = st.none() | st.integers(0, 8)
spans = st.tuples(bounds, bounds).filter(lambda b: b[0] is None or b[1] is None or b[0] < b[1])
GRID = range(-1, 10)


def members(bound: tuple[int | None, int | None]) -> set[int]:
    low, high = bound
    return {n for n in GRID if (low is None or n >= low) and (high is None or n < high)}


@given(spans, spans)
def test_overlap_and_difference_agree_with_sets_of_days(left: tuple[int, int], right: tuple[int, int]) -> None:
    first, second = span(*left), span(*right)
    assert first.overlaps(second) == bool(members(left) & members(right))
    pieces = first.without(second)
    for n in GRID:
        assert sum(piece.contains(day(n)) for piece in pieces) == (n in members(left) - members(right))


# --- visibility --------------------------------------------------------------------------------------------------

assertions_of_a_key = st.lists(st.tuples(st.integers(0, 6), spans, st.booleans()), max_size=14).map(
    lambda rows: [
        Assertion(doc, day(known), span(*valid), tombstone) for doc, (known, valid, tombstone) in enumerate(rows, 1)
    ]
)


@given(assertions_of_a_key, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_rectangles_agree_with_the_rule_at_every_point_in_any_input_order(rows: list[Assertion], random) -> None:  # type: ignore[no-untyped-def]
    found = rectangles(rows)
    shuffled = random.sample(rows, len(rows))
    assert rectangles(shuffled) == found
    assert not any(rectangle.empty for rectangle in found)
    for as_of in map(day, range(-1, 8)):
        for valid_at in map(day, GRID):
            expected = visible(shuffled, as_of, valid_at)
            docs = [rectangle.doc for rectangle in found if rectangle.contains(as_of, valid_at)]
            assert docs == ([] if expected is None else [expected.doc])


@given(assertions_of_a_key)
@settings(max_examples=300, deadline=None)
def test_no_instant_sees_what_was_asserted_later(rows: list[Assertion]) -> None:
    for as_of in map(day, range(-1, 8)):
        known = [row for row in rows if row.known_from <= as_of]
        for valid_at in map(day, GRID):
            assert visible(rows, as_of, valid_at) == visible(known, as_of, valid_at)


def test_a_bounded_correction_overlays_only_its_interval() -> None:
    rows = [Assertion(1, day(0), span(0, None)), Assertion(2, day(5), span(2, 4))]
    assert visible(rows, day(6), day(1)) == rows[0]
    assert visible(rows, day(6), day(2)) == rows[1]
    assert visible(rows, day(6), day(4)) == rows[0]
    assert visible(rows, day(4), day(2)) == rows[0]
    assert rectangles(rows) == [
        Rectangle(1, day(0), day(5), span(0, None)),
        Rectangle(1, day(5), None, span(0, 2)),
        Rectangle(1, day(5), None, span(4, None)),
        Rectangle(2, day(5), None, span(2, 4)),
    ]


def test_a_tombstone_hides_its_period_and_an_earlier_instant_still_sees_the_fact() -> None:
    rows = [Assertion(1, day(0), span(0, None)), Assertion(2, day(5), span(3, None), tombstone=True)]
    assert visible(rows, day(5), day(3)) is None
    assert visible(rows, day(5), day(2)) == rows[0]
    assert visible(rows, day(4), day(3)) == rows[0]
    assert rectangles(rows) == [Rectangle(1, day(0), day(5), span(0, None)), Rectangle(1, day(5), None, span(0, 3))]


def test_the_later_row_wins_a_tie_in_system_time_and_leaves_no_empty_rectangle() -> None:
    rows = [Assertion(2, day(1), span(0, 9)), Assertion(1, day(1), span(0, 9))]
    assert visible(rows, day(1), day(5)) == rows[0]
    assert rectangles(rows) == [Rectangle(2, day(1), None, span(0, 9))]


def test_rows_known_out_of_order_give_what_rows_in_order_give() -> None:
    late_import = [Assertion(1, day(5), span(0, None)), Assertion(2, day(2), span(0, None))]
    assert visible(late_import, day(3), day(0)) == late_import[1]
    assert visible(late_import, day(5), day(0)) == late_import[0]
    assert rectangles(late_import) == [
        Rectangle(2, day(2), day(5), span(0, None)),
        Rectangle(1, day(5), None, span(0, None)),
    ]


def test_overlay_says_what_one_assertion_closes_and_opens() -> None:
    held = [Rectangle(1, day(0), None, span(None, 3)), Rectangle(2, day(1), None, span(3, None))]
    change = overlay(held, Assertion(3, day(4), span(2, 3)))
    assert change.closed == (Rectangle(1, day(0), day(4), span(None, 3)),)
    assert change.opened == (Rectangle(1, day(4), None, span(None, 2)), Rectangle(3, day(4), None, span(2, 3)))
    erased = overlay(held, Assertion(3, day(4), span(None, None), tombstone=True))
    assert [rectangle.doc for rectangle in erased.closed] == [1, 2]
    assert erased.opened == ()


def test_overlay_marks_a_rectangle_closed_by_its_own_instant_as_empty() -> None:
    change = overlay([Rectangle(1, day(4), None, span(0, 3))], Assertion(2, day(4), span(0, 3)))
    assert [rectangle.empty for rectangle in change.closed] == [True]
    assert change.opened == (Rectangle(2, day(4), None, span(0, 3)),)


def test_overlay_refuses_an_assertion_known_before_what_is_open() -> None:
    with pytest.raises(ValueError, match="newest assertion"):
        overlay([Rectangle(1, day(4), None, span(0, 3))], Assertion(2, day(3), span(0, 3)))
    with pytest.raises(ValueError, match="open rectangles"):
        overlay([Rectangle(1, day(1), day(2), span(0, 3))], Assertion(2, day(3), span(0, 3)))
