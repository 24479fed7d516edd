"""Identifiers: UUIDs of version 7 in the order of their instants, and the one form of a ref."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.errors import InvalidInput
from brain.refs import Ref, new_id, parse_ref
from tests import factories

START = factories.instant("2026-03-01 12:00")


@given(st.integers(0, 10**15))
def test_an_id_is_a_uuid_of_version_7_with_its_instant_in_milliseconds(microseconds: int) -> None:
    made = uuid.UUID(new_id(START + timedelta(microseconds=microseconds)))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == int(START.timestamp() * 1000) + microseconds // 1000


@given(st.integers(0, 10**12), st.integers(1, 5_000))
def test_ids_sort_by_their_instants_to_the_microsecond(start: int, later: int) -> None:
    first = START + timedelta(microseconds=start)
    assert new_id(first) < new_id(first + timedelta(microseconds=later))


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("pin:work", Ref("pin", "work")),
        (" record:01a2@12 ", Ref("record", "01a2", 12)),
        ("pin:project:kestrel@3", Ref("pin", "project:kestrel", 3)),
        ("wiki:café", Ref("wiki", "café")),
        ("memory:a@b", Ref("memory", "a@b")),
        ("memory:a@0", Ref("memory", "a@0")),
    ],
)
def test_a_ref_is_read_and_written_alike(text: str, ref: Ref) -> None:
    assert parse_ref(text, field="ref") == ref
    assert str(ref) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "pin", "pin:", ":work", "Pin:work", "pin work", "pin:" + "x" * 400, "pin:a\x00", "pin:\ud800"]
)
def test_another_form_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_ref(text, field="cites")
    assert caught.value.field == "cites"
