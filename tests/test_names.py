"""Names, keys, slugs, scopes and near misses."""

import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.errors import InvalidInput
from brain.names import (
    GLOBAL,
    INVISIBLE,
    Scope,
    clean_key,
    clean_text,
    excerpt,
    fold,
    nearest,
    parse_scope,
    scrub,
    slug,
)

ANY_TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60)

# Every assigned code point outside the large uniform blocks (ideographs, syllables, private use).
POINTS = [
    point
    for start, end in [(0, 0x3400), (0xA000, 0xAC00), (0xF900, 0x17000), (0x1B000, 0x20000), (0xE0000, 0xE0200)]
    for point in range(start, end)
    if unicodedata.category(chr(point)) != "Cn"
]


@pytest.mark.parametrize("bad", ["a\x00b", "trip \ud83d", "\udc00"])
@pytest.mark.parametrize(
    "clean",
    [
        lambda v: clean_text(v, field="text", maximum=99),
        lambda v: clean_key(v, field="text"),
        lambda v: slug(v, field="text"),
        lambda v: parse_scope(v, field="text"),
    ],
)
def test_nul_and_lone_surrogates_are_refused_with_the_field_named(clean, bad):
    with pytest.raises(InvalidInput, match="text contains") as caught:
        clean(bad)
    assert caught.value.field == "text"
    str(caught.value).encode()


def test_the_six_characters_of_an_escaped_nul_are_kept():
    assert clean_text(r"\u0000", field="text", maximum=6) == r"\u0000"


def test_a_body_is_returned_byte_for_byte():
    body = "  cafe\u0301 \r\n\tﬁle\u200d 😀 \n"
    assert clean_text(body, field="text", maximum=100, minimum=1) is body


def test_a_text_is_bounded_on_both_sides():
    assert clean_text("", field="text", maximum=3) == ""
    assert clean_text("abc", field="text", maximum=3) == "abc"
    with pytest.raises(InvalidInput, match="at most 3"):
        clean_text("abcd", field="text", maximum=3)
    with pytest.raises(InvalidInput, match="must not be empty"):
        clean_text(" \n ", field="text", maximum=3, minimum=1)
    with pytest.raises(InvalidInput, match="at least 5"):
        clean_text(" four ", field="text", maximum=10, minimum=5)


def test_composed_and_decomposed_keys_are_one():
    assert clean_key("cafe\u0301", field="key") == clean_key("caf\u00e9", field="key") == "caf\u00e9"


def test_invisible_characters_do_not_make_a_second_key():
    twins = ["CORE", "CO\u200bRE", "\ufeffCORE", "CORE\u00ad", " CORE\n", "C\u2060ORE", "CORE\ufe0f", "CORE\u3164"]
    assert {clean_key(twin, field="key") for twin in twins} == {"CORE"}


@pytest.mark.parametrize("bad", ["", "  ", "\u200b\u200d", "a\nb", "a\tb", "a\x7fb", "a\u2028b", "k" * 201])
def test_an_unusable_key_is_refused(bad):
    with pytest.raises(InvalidInput):
        clean_key(bad, field="key")


def test_a_key_may_have_200_characters():
    assert clean_key("k" * 200, field="key") == "k" * 200


def test_every_format_character_of_this_interpreter_is_invisible():
    cf = [chr(p) for p in range(sys.maxunicode + 1) if unicodedata.category(chr(p)) == "Cf"]
    assert all(INVISIBLE.fullmatch(c) for c in cf)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Straße", "STRASSE"),
        ("ﬁle", "FILE"),
        ("Ⅷ", "viii"),
        ("ＡＢＣ", "abc"),
        ("a \t b", "A B"),
        ("ς", "Σ"),
        ("ẞ", "ss"),
    ],
)
def test_names_that_look_alike_fold_to_one_lookup_form(left, right):
    assert fold(left) == fold(right)


def test_fold_settles_in_one_call_for_every_code_point():
    for point in POINTS:
        folded = fold(f"a{chr(point)}b")
        assert fold(folded) == folded, hex(point)


@given(ANY_TEXT)
def test_fold_is_idempotent(value):
    assert fold(fold(value)) == fold(value)


@given(ANY_TEXT)
def test_a_slug_is_idempotent_and_has_no_separators_but_the_dash(value):
    try:
        name = slug(value, field="name")
    except InvalidInput:
        return
    assert slug(name, field="name") == name
    assert not set(name) & set(" _./\\:")
    assert not name.startswith("-")
    assert not name.endswith("-")
    assert "--" not in name


@given(ANY_TEXT)
def test_a_key_is_idempotent(value):
    try:
        key = clean_key(value, field="key")
    except InvalidInput:
        return
    assert clean_key(key, field="key") == key


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Kestrel", "kestrel"),
        ("kestrel ", "kestrel"),
        ("KESTREL", "kestrel"),
        ("kes\u200btrel", "kestrel"),
        ("Acme_Web.Site/v2", "acme-web-site-v2"),
        ("a - b", "a-b"),
        (r"team\app:x", "team-app-x"),
        ("--a--", "a"),
        ("Straße", "strasse"),
        ("東京 支店", "東京-支店"),
        ("हिन्दी", "हिन्दी"),
        ("İzmir", "i\u0307zmir"),
        ("C++", "c++"),
        ("C#", "c#"),
        ("my project (copy)", "my-project-copy"),
        ("@scope/pkg", "scope-pkg"),
        ("Ⅷ", "viii"),
    ],
)
def test_a_slug_keeps_letters_and_joins_the_rest_with_dashes(value, name):
    assert slug(value, field="name") == name


@pytest.mark.parametrize("bad", ["", "---", "😀", "+", "a" * 101])
def test_a_slug_without_a_letter_or_too_long_is_refused(bad):
    with pytest.raises(InvalidInput):
        slug(bad, field="name")


@pytest.mark.parametrize(
    ("text", "scope", "shown"),
    [
        ("global", GLOBAL, "global"),
        (" GLOBAL ", GLOBAL, "global"),
        ("Lane:Work", Scope("lane", "work"), "lane:work"),
        ("project: Kestrel ", Scope("project", "kestrel"), "project:kestrel"),
        ("project：k", Scope("project", "k"), "project:k"),
        ("PROJECT:a/b:c", Scope("project", "a-b-c"), "project:a-b-c"),
    ],
)
def test_a_scope_is_read_in_any_case_and_shown_in_one(text, scope, shown):
    assert parse_scope(text, field="scope") == scope
    assert str(scope) == shown
    assert parse_scope(shown, field="scope") == scope


@pytest.mark.parametrize("bad", ["work", "", "global:x", "lane:", "lane", ":x", "team:x", "\n# heading", "w" * 500])
def test_any_other_scope_is_refused_with_the_accepted_forms(bad):
    with pytest.raises(InvalidInput, match="global, lane:NAME or project:NAME") as caught:
        parse_scope(bad, field="scope")
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_a_bare_word_is_answered_with_both_scopes_it_could_mean():
    with pytest.raises(InvalidInput) as caught:
        parse_scope("Work", field="scope")
    assert caught.value.hint == "Did you mean lane:work or project:work?"


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("kestrl", "kestrel"),
        ("kesrtel", "kestrel"),
        ("kestrell", "kestrel"),
        ("kestrel-dashboard", "kestrel"),
        ("kestrel-dashbord", "kestrel-dashboard"),
        ("kestreldashboard", "kestrel-dashboard"),
        ("cafe-x", "café-x"),
        ("kestrel_dashboard", "kestreldashboard"),
        ("notebok", "notebooks"),
    ],
)
def test_a_near_miss_is_found_from_either_side(word, known):
    assert nearest(word, [known, "orchard"]) == [known]
    assert nearest(known, [word, "orchard"]) == [word]


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("alpha", "beta"),
        ("api", "app"),
        ("q1", "q2"),
        ("plan-2025", "plan-2026"),
        ("v1", "v2"),
        ("kestrel-2", "kestrel"),
        ("acme-v2", "acme"),
        ("client-a", "client-b"),
        ("acme-api", "acme-web"),
        ("svc-eu", "svc-us"),
        ("kestrel", "kestrel"),
        ("c++", "c#"),
        ("Kestrel", "kestrel"),
        ("", "a"),
        ("東京", "東方"),
        ("dashboard", "kestrel-dashboard"),
    ],
)
def test_clearly_different_or_equal_names_are_no_near_misses(word, known):
    assert nearest(word, [known]) == nearest(known, [word]) == []


def test_near_misses_come_nearest_first_and_at_most_five():
    known = ["kestrels-web", "kestrel-a", "kestrel-b", "kestrel-c", "kestrel-d", "kestral", "ke-strel"]
    assert nearest("kestrel", known) == ["ke-strel", "kestral", "kestrel-a", "kestrel-b", "kestrel-c"]
    assert nearest("kestrel", reversed(known)) == nearest("kestrel", known)


@given(ANY_TEXT)
def test_scrubbed_text_always_encodes_and_valid_text_is_unchanged(value):
    scrub(value).encode()
    assert scrub(scrub(value)) == scrub(value)
    if "\x00" not in value and not any("\ud800" <= c <= "\udfff" for c in value):
        assert scrub(value) == value


def test_scrub_joins_a_split_pair_and_replaces_a_lone_half():
    assert scrub("\ud83d\ude00 \ud83d \x00") == "😀 \ufffd \ufffd"


def test_an_excerpt_is_one_short_line():
    assert excerpt("a\n# b\x00" + "c" * 500, 20) == "a # b\ufffd" + "c" * 13 + "…"
    assert excerpt("short") == "short"


def test_hostile_combining_marks_fold_in_linear_time():
    start = time.perf_counter()
    fold("a" + "\u0301\u0323" * 50_000)
    assert time.perf_counter() - start < 1
