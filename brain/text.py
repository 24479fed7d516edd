"""Text analysis: the terms under which rows are indexed and queries are searched, the same for both.

A text is cut at white space, and each chunk is analysed by itself, so that the order of words never matters:

* NFKC, case folded, accents folded, digits of any script as ASCII, invisible characters dropped;
* words of an alphabet are stemmed by Snowball, irregular English forms by their base (went -> go);
  possessives and contractions lose their ending (we'll -> we);
* Han and Kana, Hangul, Thai, Lao, Khmer and Myanmar become single characters and bigrams, cut where the script changes;
* an identifier is indexed whole and in parts, at each of its levels: `src/api/login.py` gives the path, `login.py`,
  and the words; `fooBar`, `foo_bar` and `foo-bar` are one whole, `foobar`; `C++`, `C#` and `.NET` keep their signs;
* numbers are indexed by value (1,200.50 is 1200.5), a form that could be a version also as written (3.10);
* an ISO date is indexed whole, as month and as year; a symbol or emoji by itself, an emoji sequence also by its bases;
* a text without any of these is indexed by its punctuation.

Every word is indexed, stop words too, and `len(terms(text))` is the length of a document for BM25. Stop words leave a
query unless nothing else is left. A term has at most 64 code points; a longer one keeps its first 47 and a digest.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import Stemmer

from brain.errors import InvalidInput
from brain.irregular import BASES
from brain.names import INVISIBLE, excerpt, normalize
from brain.quantities import identity, moment, numbers, quantity
from brain.scripts import classes

ANALYSIS_VERSION: Final = 1
"""Stored beside the index; raise it with every change that gives some text other terms."""

TERM_MAXIMUM: Final = 64
LANGUAGES: Final = frozenset(Stemmer.algorithms())

_STOP_WORDS = """
    a about am an and any are as at be been being but by can cant could couldnt did didnt do does doesnt doing dont for
    from had hadnt has hasnt have havent having he her hers him his how i if in into is isnt it its itself just me
    might my no nor not of off on or our ours please shall she should shouldnt so some such tell than that the their
    theirs them then there these they this those to too us very was wasnt we were werent what whatever whats when whens
    where wheres which who whom whos whose why will with wont would wouldnt you your yours
"""

STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""English words that do not say what a question is about: function words, question words and fillers."""

# Languages that Snowball stems in a script of their own; their Latin words are stemmed as English.
_SCRIPT_OF: Final = {
    "russian": "c", "greek": "e", "arabic": "o", "armenian": "o", "hindi": "o", "nepali": "o", "persian": "o",
    "tamil": "o", "yiddish": "o",
}  # fmt: skip
_ENGLISH: Final = frozenset({"english", "porter"})
_CURRENCIES: Final = {"€": "eur", "£": "gbp", "₹": "inr", "₽": "rub", "₩": "krw", "₴": "uah", "₪": "ils", "₿": "btc"}

Pair = tuple[str, str]
"""A term, and the word as written when it is a stop word."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: unique terms in the order of the question, and the words that were left out as stop words."""

    terms: tuple[str, ...]
    only_stop_words: bool
    ignored: tuple[str, ...]
    names: frozenset[str] = frozenset()
    """Those of the terms that come from words with a capital inside a sentence: probably names."""


def terms(text: str, language: str = "english") -> list[str]:
    """The index terms of a text in its order, with repeats. Raises InvalidInput for an unknown language."""
    _check(language)
    return [term for chunk in _chunks(text) for term, _ in _pairs(chunk, language)] or _punctuation(text)


def query_terms(text: str, language: str = "english") -> Query:
    """The terms to search for; stop words are among them only when the text has nothing else."""
    _check(language)
    pairs = [pair for chunk in _chunks(text) for pair in _pairs(chunk, language)]
    kept = dict.fromkeys(term for term, stop in pairs if not stop)
    if kept:
        ignored = tuple(dict.fromkeys(stop for _, stop in pairs if stop))
        return Query(tuple(kept), False, ignored, _names(text, language) & kept.keys())
    stopped = dict.fromkeys(term for term, _ in pairs)
    return Query(tuple(stopped or dict.fromkeys(_punctuation(text))), bool(stopped), ())


def distinct_terms(text: str, language: str = "english") -> frozenset[str]:
    """What a query of this text would look for, in no order."""
    pairs = {pair for chunk in _chunks(text) for pair in _pairs(chunk, language)}
    found = frozenset(term for term, stop in pairs if not stop) or frozenset(term for term, _ in pairs)
    return found or frozenset(_punctuation(text))


def _names(text: str, language: str) -> frozenset[str]:
    """The terms of capitalised words that do not begin a sentence or a quotation."""
    words = " ".join(match[0] for match in _INSIDE.finditer(text) if match[0][0].isupper())
    return frozenset(term for chunk in _chunks(words) for term, stop in _pairs(chunk, language) if not stop)


def normal_form(text: str) -> str:
    """The text as one line of folded words, for comparing two texts: NFKC, no case, accents or invisible characters."""
    before, folded = "", text
    while folded != before:  # a few code points need a second pass to settle
        before, folded = folded, _fold(" ".join(_prepare(folded).split()))
    return folded


def _check(language: str) -> None:
    if language not in LANGUAGES:
        known = ", ".join(sorted(LANGUAGES))
        raise InvalidInput(
            f"language must be the name of a Snowball stemmer, such as english, not '{excerpt(language)}'.",
            field="language",
            hint=f"Known: {known}.",
        )


# --- from text to chunks


_INSIDE: Final = re.compile(r"(?<!^)(?<![.?!\"“] )(?<![\"“„«])\b[^\W\d_]\w+")
_NARROW_SPACE: Final = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")
_STRAY_JOINER: Final = re.compile(
    "(?<![\u2190-\u2bff\U0001f000-\U0001faff])\u200d|\u200d(?![\u2190-\u2bff\U0001f000-\U0001faff])"
)
_STANDALONE: Final = re.compile("[\u00bc-\u00be\u2120\u2122\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793]")


class _Rewrites(dict[int, str]):
    """Characters that are written in more than one way: digits, dashes, apostrophes, keycaps, Arabic separators."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        digit = unicodedata.decimal(char, None)
        self[point] = char if digit is None else str(digit)
        return self[point]


_REWRITES: Final = _Rewrites(
    dict.fromkeys(map(ord, "‐‑‒–−"), "-")
    | dict.fromkeys(map(ord, "’‘ʼʻʹ´′"), "'")
    | {ord("⁄"): "/", ord("٫"): ".", ord("٬"): ",", ord("ـ"): "", 0x20E3: ""}
)


def _chunks(text: str) -> list[str]:
    return text.split() if text.isascii() else _NARROW_SPACE.sub("'", text).split()


def _visible(match: re.Match[str]) -> str:
    return " " if "\u200b" in match[0] else "\u200d" if "\u200d" in match[0] else ""


def _prepare(text: str) -> str:
    """NFKC with one spelling of digits, dashes and apostrophes; case and accents are still there."""
    if text.isascii():
        return text
    text = _STRAY_JOINER.sub("", INVISIBLE.sub(_visible, text))
    return normalize("NFKC", _STANDALONE.sub(r" \g<0> ", text).translate(_REWRITES)).translate(_REWRITES)


_ACCENTS: Final = re.compile(
    "[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]"
    "|(?<![иу])\u0306"
)
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)


def _fold(text: str) -> str:
    """Case and accents folded; й and ў, Kana voicing, Hangul, Thai and Indic vowels stay."""
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", normalize("NFKD", text.casefold().translate(_LETTERS)))
    return normalize("NFKC", bare)


# --- from chunks to tokens


_W: Final = "[lumdcCeEo]"
# Not possessive: Python before 3.11.5 matches a possessive group wrongly, and nothing here is tried twice anyway.
_TOKEN: Final = re.compile(
    rf"""
    (?P<word> (?:(?<![lumdcCeEo.])\.(?=[luo]))?  {_W}+
              (?: (?: :// | :: | -> | \+\+ | (?<=d),(?=d) | [-_./\\:@'&+=?\#] ) {_W}+ )*
              (?: \+\+ | \# )? )
    | (?P<run> h[hm]* | g[gm]* | t[tm]* | w[wm]* | x[xm]* | y[ym]* )
    | (?P<emoji> rr | [sf]f?(?:z[sf]f?)* | r )
    | (?P<money> \$(?=d) | (?<=d)[$%] )
    """,
    re.VERBOSE,
)
_PLAIN: Final = re.compile(r"u?[lm]+|C?[cm]+|E?[em]+|[om]+")
_OPERATOR: Final = re.compile(r"[$%]|(?=.*[=<>&|])[-!=<>&|+*/:?^~%]{2,3}")


def _pairs(chunk: str, language: str) -> tuple[Pair, ...]:
    return _cached(chunk, language) if len(chunk) <= TERM_MAXIMUM else _analyse(chunk, language)


@lru_cache(maxsize=1 << 16)
def _cached(chunk: str, language: str) -> tuple[Pair, ...]:
    return _analyse(chunk, language)


def _analyse(chunk: str, language: str) -> tuple[Pair, ...]:
    """The terms of one run of characters without white space."""
    return tuple(pair for part in _prepare(chunk).split() for pair in _part(part, language))


def _part(part: str, language: str) -> Iterator[Pair]:
    found = False
    for match in _TOKEN.finditer(classes(part)):
        text = part[match.start() : match.end()]
        plain = match.lastgroup == "word" and _PLAIN.fullmatch(match[0])
        for pair in _word(text, language) if plain else _token(text, match.lastgroup, language):
            found = True
            yield pair
    if not found and _OPERATOR.fullmatch(part):
        yield part, ""


def _token(text: str, kind: str | None, language: str) -> Iterator[Pair]:
    if kind == "word":
        return _identifier(text, language)
    if kind == "run":
        return _unstopped(_grams(text))
    return _unstopped(_emoji(text) if kind == "emoji" else [text])


def _capped(term: str) -> str:
    if len(term) <= TERM_MAXIMUM:
        return term
    return term[:47] + "…" + hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _punctuation(text: str) -> list[str]:
    """What is left of a text without words, numbers or symbols: its chunks with repeats of a character as one."""
    chunks = (re.sub(r"(.)\1+", r"\1", chunk) for chunk in _prepare(text).split())
    seen = ("".join(c for c in chunk if unicodedata.category(c) not in ("Cc", "Cf", "Cs")) for chunk in chunks)
    return [_capped(chunk) for chunk in seen if chunk]


# --- scripts without spaces, symbols


def _units(run: str) -> list[str]:
    """The letters of a run, each with the marks on it."""
    units: list[str] = []
    for char in run:
        if units and unicodedata.category(char)[0] == "M" and len(units[-1]) < 8:
            units[-1] += char
        else:
            units.append(char)
    return units


def _grams(run: str) -> list[str]:
    units = _units(_fold(run))
    return units + [a + b for a, b in pairwise(units)]


_SKIN_TONE: Final = re.compile("(?<=.)[\U0001f3fb-\U0001f3ff]")


def _emoji(text: str) -> list[str]:
    if text in _CURRENCIES:
        return [_CURRENCIES[text]]
    toneless = _SKIN_TONE.sub("", text)
    bases = toneless.split("\u200d") if "\u200d" in toneless else []
    return list(dict.fromkeys(map(_capped, (text, toneless, *bases))))


# --- identifiers: path -> segments -> atoms -> words


_CONTRACTION: Final = re.compile(r"'(?:s|ll|re|ve|d|m)(?![\w'])|(?<=n)'(?=t(?![\w']))", re.IGNORECASE)
_SEGMENTS: Final = re.compile(r"(?<=\+\+)(?=\w)|(?<!\+)\+(?!\+)|->|[/\\:@?&=]+|\#(?=\w)")
_ATOMS: Final = re.compile(r"[-_]|(?<!\d)[.']|[.'](?!\d)")
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_SOFT_JOINS: Final = re.compile(r"(?<!\d)[-_']|[-_'](?!\d)")
_CAMEL: Final = re.compile(r"u{2,}l$|u+(?=ul)|u?[lm]+|u+|C?[cm]+|C+|E?[em]+|E+|[om]+|d+")
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th"})


def _identifier(text: str, language: str) -> Iterator[Pair]:
    text = _CONTRACTION.sub("", text)
    fixed = moment(text) or identity(text)
    if fixed:
        yield from _unstopped(fixed)
        return
    segments = [segment for segment in _SEGMENTS.split(text) if segment.strip(".+#")]
    if len(segments) > 1 or text[0] == ".":
        yield _capped(_fold(text).replace("\\", "/")), ""
    for segment in segments:
        yield from _segment(segment.lstrip("."), language)


def _unstopped(found: list[str]) -> Iterator[Pair]:
    return ((_capped(term), "") for term in found)


def _segment(text: str, language: str) -> Iterator[Pair]:
    if text[-1] in "+#":
        yield _capped(_fold(text)), ""
        text = text.rstrip("+#")
        if len(text) < 3:  # C++ and C# are not C
            return
    parts = quantity(text)
    if parts:
        yield from _measure(text, parts, language)
    elif _INITIALS.fullmatch(text):
        yield from _word(text.replace(".", ""), language)
    else:
        yield from _compound(text, language)


def _compound(text: str, language: str) -> Iterator[Pair]:
    atoms = [atom for atom in _ATOMS.split(text) if atom]
    if len(atoms) > 1:
        joined = _SOFT_JOINS.sub("", text)
        if _ATOMS.search(joined) or not joined.isalnum():
            yield _capped(_fold(joined)), ""
        else:
            yield from _word(joined, language)
    for atom in atoms:
        parts = quantity(atom)
        yield from _measure(atom, parts, language) if parts else _atom(atom, language)


def _atom(text: str, language: str) -> Iterator[Pair]:
    kinds = classes(text)
    words = [text[match.start() : match.end()] for match in _CAMEL.finditer(kinds)]
    if len(words) > 1:
        yield from _word(text, language)
        if "d" in kinds and len(words) > 4:  # a hash or a random id: its fragments say nothing
            return
    for word in words:
        yield from _word(word, language)


def _measure(text: str, parts: tuple[str, str, str], language: str) -> Iterator[Pair]:
    """A number with what is written to it: v1.2.3, EUR1,200.00, Python3.11, 5kg, 8th."""
    prefix, number, suffix = parts
    if suffix.casefold() in _ORDINALS:
        suffix = ""
    if prefix or suffix:
        yield _capped(_fold(text)), ""
    if prefix and prefix not in "vV":
        yield from _atom(prefix, language)
    yield from _unstopped(numbers(number, decimal_comma=language not in _ENGLISH))
    if suffix:
        yield from _atom(suffix, language)


# --- words


_stemmers = threading.local()  # a Stemmer object must not be used by two threads at once


def _stem(word: str, language: str) -> str:
    stemmer = getattr(_stemmers, language, None)
    if stemmer is None:
        stemmer = Stemmer.Stemmer(language, 0)
        setattr(_stemmers, language, stemmer)
    return str(stemmer.stemWord(word))


def _stemming(word: str, language: str) -> str:
    """The algorithm for a word's script in a namespace of this language; empty when the word keeps its form."""
    script = classes(word[0]).lower()
    script = "l" if script == "u" else script
    own = _SCRIPT_OF.get(language, "l")
    if script == own or (language == "serbian" and script == "c"):
        return language
    return "english" if script == "l" else ""


def _word(text: str, language: str) -> tuple[Pair, ...]:
    return _cached_word(text, language) if len(text) <= TERM_MAXIMUM else ((_capped(_fold(text)), ""),)


@lru_cache(maxsize=1 << 15)
def _cached_word(text: str, language: str) -> tuple[Pair, ...]:
    """The stem of one word; in other languages than English also the stem of its unaccented form, where it differs."""
    folded = _fold(text)
    if not folded:
        return ()
    algorithm = _stemming(folded, language)
    if not algorithm or len(folded) > TERM_MAXIMUM or folded.isdecimal():
        return ((_capped(folded), ""),)
    stop = folded if algorithm in _ENGLISH and folded in STOP_WORDS and not (len(text) > 1 and text.isupper()) else ""
    base = BASES.get(folded, folded) if algorithm in _ENGLISH else folded
    stems = [_stem(base, algorithm) or base]
    if algorithm not in _ENGLISH:
        stems.append(_fold(_stem(text.casefold(), algorithm)))
    return tuple((stem, stop) for stem in dict.fromkeys(stems) if stem)
