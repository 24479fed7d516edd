"""Text analysis: what rows are found by."""

import itertools
import random
import threading
import time
import unicodedata
from collections import Counter

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import InvalidInput
from brain.irregular import BASES
from brain.text import LANGUAGES, STOP_WORDS, TERM_MAXIMUM, distinct_terms, normal_form, query_terms, terms

ANY_TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=80)

# Every assigned code point outside the large uniform blocks (ideographs, syllables, private use).
POINTS = [
    point
    for start, end in [(0, 0x3400), (0xA000, 0xAC00), (0xF900, 0x17000), (0x1B000, 0x20000), (0xE0000, 0xE0200)]
    for point in range(start, end)
    if unicodedata.category(chr(point)) != "Cn"
]
WORDS = [
    "Kestrel",
    "v1.2.3",
    "src/api/login.py",
    "C++",
    "部署服务",
    "don’t",
    "1,200.00",
    "👩🏽‍💻",
    "café",
    "สวัสดี",
    "2026-03-01",
]


def matches(query: str, text: str, language: str = "english") -> bool:
    """Whether every term of the query is a term of the text, as in a strict search."""
    return set(query_terms(query, language).terms) <= set(terms(text, language))


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("english", "renew the passports", "Passport renewed in May"),
        ("german", "Rechnung Haus", "Die Rechnungen für die Häuser sind bezahlt"),
        ("french", "homme parle", "L'homme parlait français"),
        ("spanish", "cancion favorita", "Sus canciones favoritas; la canción"),
        ("portuguese", "coracao", "O coração"),
        ("italian", "citta", "La città eterna"),
        ("dutch", "fietsen", "Twee fietsen op straat"),
        ("swedish", "hund", "Hundarna skäller"),
        ("finnish", "hyvaa", "Hyvää huomenta"),
        ("turkish", "kitap", "Kitaplar masada"),
        ("russian", "книга", "Две книги на столе"),
        ("russian", "елка", "Новая ёлка"),
        ("greek", "ΒΙΒΛΙΑ", "Τα βιβλία"),
        ("arabic", "السلام", "السَّلامُ عليكم"),
        ("hindi", "मुंबई", "वह मुंबई में रहता है"),
        ("english", "部署", "今天部署服务"),
        ("english", "飲む", "コーヒーを飲む"),
        ("english", "ｺｰﾋｰ", "コーヒーを飲む"),
        ("english", "회의", "내일 회의가 있습니다"),
        ("english", "กิน", "ฉันกินข้าว"),
        ("english", "ລາວ", "ພາສາລາວ"),
        ("english", "ខ្មែរ", "ភាសាខ្មែរ"),
        ("english", "မြန်မာ", "မြန်မာဘာသာ"),
        ("english", "duong", "Đường Nguyễn Huệ"),
        ("english", "שלום", "שָׁלוֹם עולם"),
    ],
)
def test_a_word_is_found_in_many_languages(language, query, text):
    assert matches(query, text, language)


def test_a_single_han_kana_hangul_or_thai_character_is_a_term():
    assert terms("部署") == ["部", "署", "部署"]
    assert {"안", "녕", "안녕"} == set(terms("안녕"))
    assert "か" in terms("かな")
    assert "กิ" in terms("กิน")
    assert terms("が") == terms("か\u3099")
    assert terms("が") != terms("か")


def test_the_script_boundary_separates_words():
    assert {"重", "跑", "重跑", "gen", "itgc", "后"} <= set(terms("重跑gen-itgc后"))
    assert set(terms("go 部署")) == {"go", "部", "署", "部署"}
    assert {"код", "python"} <= set(terms("кодpython"))
    assert not {"署v", "v部"} & set(terms("v部署v2"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("café", "cafe"),
        ("Straße", "STRASSE"),
        ("ﬁle", "file"),
        ("Ⅷ", "viii"),
        ("don’t", "don't"),
        ("ＡＰＩ", "api"),
        ("Caroline’s", "Caroline"),
        ("we'll", "we"),
        ("smørrebrød", "smorrebrod"),
        ("İstanbul", "istanbul"),
        ("２０２６", "2026"),
        ("٢٠٢٦", "2026"),
        ("soft\u00adware", "software"),
        ("نمی\u200cشود", "نمیشود"),
        ("p.m.", "pm"),
        ("fooBarBaz", "foo_bar_baz"),
        ("foo-bar-baz", "foo_bar_baz"),
        ("❤️", "❤"),
        ("€", "EUR"),
        ("1,200.00", "1200"),
        ("1’200.50", "1.200,50"),
        ("1\u202f200,50", "1200.5"),
        ("1,23,456", "123456"),
        ("2026/3/1", "2026-03-01"),
        ("½", "1/2"),
        ("09:30", "9:30"),
        ("−", "-"),
        ("HTTPs", "https"),
    ],
)
def test_two_spellings_have_the_same_terms(left, right):
    assert terms(left) == terms(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("C++", "C"),
        ("C++", "C#"),
        ("C#", "F#"),
        (".NET", "net"),
        ("3.10", "3.1"),
        ("й", "и"),
        ("→", "←"),
        ("v1.2", "v1.3"),
    ],
)
def test_what_must_stay_apart_has_other_terms(left, right):
    assert terms(left) != terms(right)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("fooBarBaz", {"foobarbaz", "foo", "bar", "baz"}),
        ("XMLHttpRequest", {"xmlhttprequest", "xml", "http", "request"}),
        ("src/api/login.py", {"src/api/login.py", "src", "api", "login.py", "login", "py"}),
        ("snake_case", {"snakecas", "snake", "case"}),
        ("api-gw", {"apigw", "api", "gw"}),
        ("e-mail", {"email", "e", "mail"}),
        ("user@example.com", {"user@example.com", "user", "example.com", "exampl", "com"}),
        (
            "https://example.com/a?x=1",
            {"https://example.com/a?x=1", "https", "example.com", "exampl", "com", "a", "x", "1"},
        ),
        ("v1.2.3", {"v1.2.3", "1.2.3", "1", "2", "3"}),
        ("c++17", {"c++17", "c++", "17"}),
        ("C++/C#", {"c++", "c#"}),
        (".NET", {".net", "net"}),
        ("notepad++", {"notepad++", "notepad"}),
        ("sha256", {"sha256", "sha", "256"}),
        ("R&D", {"r&d", "r", "d"}),
        ("O'Brien", {"obrien", "o", "brien"}),
        ("URLs", {"url"}),
        ("550e8400-e29b-41d4-a716-446655440000", {"550e8400-e29b-41d4-a716-446655440000"}),
        ("2026-03-01", {"2026-03-01", "2026-03", "2026"}),
        ("2026-03-01T10:30:00Z", {"2026-03-01t10:30:00z", "2026-03-01", "2026-03", "2026", "10:30"}),
        ("10:30–11:45", {"10:30", "11:45"}),
        ("March", {"march"}),
        ("5kg", {"5kg", "5", "kg"}),
        ("8th", {"8"}),
        ("0042", {"0042", "42"}),
        ("1.200", {"1.2", "1200"}),
        ("€1,200.00", {"eur", "1200"}),
        ("$100", {"$", "100"}),
        ("100%", {"100", "%"}),
        ("👩🏽‍💻", {"👩🏽‍💻", "👩‍💻", "👩", "💻"}),
        ("👍🏽", {"👍🏽", "👍"}),
        ("🇩🇪🇫🇷", {"🇩🇪", "🇫🇷"}),
        ("①②", {"1", "2"}),
        ("<script>", {"script"}),
        ("!=", {"!="}),
        ("!!!", {"!"}),
        ("Acme™", {"acm", "tm"}),
    ],
)
def test_identifiers_numbers_and_symbols_are_indexed_whole_and_in_parts(text, found):
    assert set(terms(text)) == found


AMOUNTS = ["1200.50", "1,200.50", "1200.5", "1'200.50", "1.200,50", "1200,5", "1’200.5", "1\u202f200,50"]


@pytest.mark.parametrize("query", AMOUNTS)
@pytest.mark.parametrize("text", AMOUNTS)
def test_an_amount_is_found_in_every_spelling(query, text):
    assert matches(query, f"Paid {text} for hosting")
    assert matches(f"EUR {query}", f"paid EUR{text}")


@pytest.mark.parametrize("version", ["3.10", "3.0", "12.20", "24.10", "2024.10", "0.90", "2,024.10"])
def test_a_number_that_may_be_a_version_is_not_found_by_value_only(version):
    assert matches(version, f"runs on {version}")
    assert matches(version.replace(",", ""), f"runs on {version}")
    assert not matches(version, f"runs on {version.replace(',', '').rstrip('0').rstrip('.')}")


@pytest.mark.parametrize(
    "name", ["fooBar", "FooBar", "foo_bar", "foo-bar", "foo.bar", "foo/bar.py", "HTTPServer2", "std::foo", "a.fooBar()"]
)
def test_an_identifier_is_found_as_it_is_written(name):
    assert matches(name, f"see {name} here")
    assert matches(name, f"`{name}`, and more")
    assert not matches(name, "see foo and bar, server or std here")


@pytest.mark.parametrize(("query", "text"), list(itertools.permutations(["fooBar", "FooBar", "foo_bar", "foo-bar"], 2)))
def test_the_spellings_of_one_identifier_find_each_other(query, text):
    assert matches(query, f"call {text} first")


def test_a_comma_and_three_digits_is_a_decimal_too_where_the_language_writes_it_so():
    assert terms("1,200") == ["1200"]
    assert set(terms("1,200", "german")) == {"1.2", "1200"}


@pytest.mark.parametrize("text", WORDS)
def test_a_fact_is_found_by_each_of_its_words_as_written(text):
    assert matches(text, f"We noted {text}, on purpose ({text}).")


def test_latin_words_have_the_stems_of_the_chosen_snowball_algorithm():
    for language in ("english", "german", "swedish", "spanish"):
        stemmer = Stemmer.Stemmer(language)
        for word in ("running", "houses", "zeitungen", "hundarna", "canciones"):
            assert terms(word, language) == [stemmer.stemWord(word)]
    assert terms("running книги", "russian") == ["run", Stemmer.Stemmer("russian").stemWord("книги")]


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("went", "go"), ("gone", "go"), ("bought", "buy"), ("told", "tell"), ("met", "meeting"), ("ran", "running"),
        ("wrote", "writes"), ("written", "write"), ("flew", "fly"), ("paid", "pay"), ("taught", "teaches"),
        ("children", "child"), ("people", "person"), ("wives", "wife"), ("mice", "mouse"), ("feet", "foot"),
    ],
)  # fmt: skip
def test_an_irregular_form_is_found_by_its_base_and_the_other_way_round(form, base):
    assert matches(form, f"They {base} there")
    assert matches(base, f"They {form} there")


@pytest.mark.parametrize(
    ("query", "text"),
    [("where does she live", "She lives in Bern"), ("when will the train leave", "The train leaves at nine")],
)
def test_the_present_of_a_verb_is_not_taken_for_a_plural(query, text):
    assert matches(query.split()[-1], text)


@pytest.mark.parametrize("form", sorted(BASES))
def test_every_irregular_form_has_one_base_in_any_case(form):
    base = BASES[form]
    assert base not in BASES
    assert terms(form) == terms(form.upper()) == terms(form.title()) == terms(base)
    assert form not in STOP_WORDS


def test_irregular_forms_are_english_only():
    assert terms("went") != terms("went", "german")
    assert terms("went книги", "russian")[0] == "go"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("When did Caroline meet Ben?", {"carolin", "ben"}),
        ("Caroline met Ben", {"ben"}),
        ("What is it. Caroline knows", set()),
        ("Really? Caroline knows Ben! Dora too", {"ben"}),
        ('She said "Caroline knows" to Ben', {"ben"}),
        ("She said “Caroline knows” to Ben", {"ben"}),
        ("when did caroline meet ben", set()),
        ("the IT of ACME", {"it", "acm"}),
        ("We met The Who in May", {"may"}),
        ("see fooBar and GitHub", {"github", "git", "hub"}),
        ("今天 部署 服务 回家", set()),
        ("в Москве и Берлине", {"москве", "берлине"}),
        ("ที่ ประชุม วันพุธ", set()),
        ("내일 회의가 있습니다", set()),
        ("", set()),
        ("X", set()),
    ],
)
def test_names_are_capitalised_words_inside_a_sentence(text, names):
    found = query_terms(text).names
    assert found == names
    assert found <= set(query_terms(text).terms)


@given(ANY_TEXT)
def test_the_distinct_terms_of_a_text_are_those_of_a_query_of_it(text):
    assert distinct_terms(text) == set(query_terms(text).terms)


@given(ANY_TEXT)
def test_names_are_among_the_terms_and_a_query_in_lower_case_has_none(text):
    query = query_terms(text)
    assert query.names <= set(query.terms)
    assert not query_terms(text.lower()).names


def test_every_snowball_language_is_accepted_and_others_are_refused():
    assert frozenset(Stemmer.algorithms()) == LANGUAGES
    for language in LANGUAGES:
        assert terms("naïve 42 слово", language)
    for call in (terms, query_terms):
        with pytest.raises(InvalidInput, match="Snowball") as caught:
            call("x", "klingon")
        assert caught.value.field == "language"


def test_question_words_and_fillers_leave_the_query_and_are_reported():
    query = query_terms("When did Caroline go to the support group, please?")
    assert query.terms == ("carolin", "go", "support", "group")
    assert query.ignored == ("when", "did", "to", "the", "please")
    assert not query.only_stop_words


@pytest.mark.parametrize("text", ["who are you", "the and of", "don't", "What is it?"])
def test_a_query_of_stop_words_only_searches_for_them(text):
    query = query_terms(text)
    assert query.only_stop_words
    assert query.ignored == ()
    assert query.terms == tuple(dict.fromkeys(terms(text)))


def test_stop_words_are_indexed():
    assert terms("who are you") == ["who", "are", "you"]


def test_an_acronym_in_capitals_is_not_a_stop_word():
    assert query_terms("Is WHO in IT").terms == ("who", "it")


def test_stop_words_do_not_leave_a_query_in_another_language():
    assert "war" in query_terms("was war los", "german").terms
    assert "was" in query_terms("was war los", "german").terms


def test_every_stop_word_is_one_that_analysis_can_meet():
    assert all(query_terms(word).only_stop_words for word in STOP_WORDS)


def test_query_terms_are_unique_and_keep_the_order_of_the_question():
    assert query_terms("beta alpha beta Alphas gamma").terms == ("beta", "alpha", "gamma")


def test_an_empty_or_invisible_text_has_no_terms():
    for text in ("", " \n", "\u200b\u200d\ufeff", "\x00\ud800"):
        assert terms(text) == []
        assert query_terms(text).terms == ()


def test_every_visible_code_point_is_a_term_and_settles_in_one_normal_form():
    for point in POINTS:
        char = chr(point)
        form = normal_form(char)
        assert normal_form(form) == form, hex(point)
        found = terms(char)
        if unicodedata.category(char) in ("Ll", "Lu", "Lt", "Nd", "No", "Nl", "So", "Sc", "Sm", "Po", "Ps", "Pe"):
            assert found, hex(point)


@given(ANY_TEXT)
def test_analysis_takes_any_text_and_gives_short_storable_terms(text):
    found = terms(text)
    assert found == terms(text)
    assert set(query_terms(text).terms) <= set(found)
    for term in found:
        term.encode()
        assert 0 < len(term) <= TERM_MAXIMUM
        assert term.split() == [term]


@given(ANY_TEXT)
def test_the_normal_form_is_idempotent_and_has_no_case(text):
    form = normal_form(text)
    assert normal_form(form) == form
    assert form == form.casefold()


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_words_does_not_change_the_terms(words, rng: random.Random):
    shuffled = rng.sample(words, len(words))
    assert Counter(terms(" ".join(words))) == Counter(terms(" ".join(shuffled)))


@settings(max_examples=50)
@given(st.lists(ANY_TEXT, max_size=4))
def test_a_text_has_the_terms_of_its_chunks(texts):
    chunks = [chunk for text in texts for chunk in text.split()]
    joined = Counter(terms("\n".join(chunks)))
    parts = Counter(term for chunk in chunks for term in terms(chunk))
    assert joined <= parts


def test_a_long_identifier_keeps_its_start_and_differs_from_its_neighbour():
    one, other = "x" * 100 + "1y", "x" * 100 + "2y"
    assert terms(one) != terms(other)
    assert terms(one)[0].startswith("x" * 47)
    assert len(terms(one)[0]) == TERM_MAXIMUM
    assert matches(one, f"see {one}")
    assert not matches(one, f"see {other}")


@pytest.mark.parametrize(
    "unit",
    [
        "a-",
        "aB",
        "漢",
        "กั",
        "a\u0301",
        "\u0301\u0323",
        ".a",
        "1,",
        "1.",
        "1,111",
        "'s",
        "/a",
        "👩\u200d",
        "👍🏽",
        "+",
        "#",
        "<>",
        "a1",
        "a\u200b",
        "漢a",
        "\ud800",
        "1:",
        "A.",
        "a+",
        "_",
    ],
)
def test_hostile_input_takes_time_in_proportion_to_its_length(unit):
    terms(unit * 100)
    start = time.perf_counter()
    found = terms(unit * (40_000 // len(unit)))
    assert time.perf_counter() - start < 10
    assert len(found) <= 100_000


def test_threads_stem_alike():
    words = [f"{stem}{ending}" for stem in ("walk", "jump", "paint", "render") for ending in ("ing", "ed", "s", "er")]
    expected = [Stemmer.Stemmer("danish").stemWord(word) for word in words]
    results: list[list[str]] = []

    def work() -> None:
        results.append([terms(word, "danish")[0] for word in words * 20][: len(words)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8
