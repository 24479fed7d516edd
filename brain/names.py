"""Names: what a text, a key, a slug and a scope may look like, and which names are near misses of each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from brain.errors import InvalidInput

KEY_MAXIMUM: Final = 200
SLUG_MAXIMUM: Final = 100
SCOPE_FORMS: Final = "global, lane:NAME or project:NAME"

ScopeKind = Literal["global", "lane", "project"]

# Category Cf, written out so that the stored forms do not change with the interpreter's Unicode version.
_FORMAT: Final = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
# Invisible characters of other categories: combining grapheme joiner, Hangul fillers, Khmer inherent vowels,
# Mongolian and general variation selectors.
_OTHER_INVISIBLE: Final = (
    "\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
)

INVISIBLE: Final = re.compile(f"[{_FORMAT}{_OTHER_INVISIBLE}]+")
"""Runs of characters that a reader cannot see: format characters, variation selectors, fillers."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_DIGITS: Final = re.compile(r"\d+")


def excerpt(value: str, maximum: int = 60) -> str:
    """The start of a value as it may be shown in a message: one line, valid Unicode, at most `maximum` characters."""
    line = " ".join(_CONTROL.sub(" ", scrub(value[: maximum + 1])).split())
    return line if len(value) <= maximum else line[: maximum - 1] + "…"


def scrub(value: str) -> str:
    """The value with every lone surrogate and NUL replaced by U+FFFD, so that it always encodes as UTF-8."""
    if _SURROGATE.search(value):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value.replace("\x00", "\ufffd")


def _refuse_unstorable(value: str, field: str) -> None:
    if "\x00" in value:
        raise InvalidInput(f"{field} contains a NUL character (U+0000); remove it.", field=field)
    if _SURROGATE.search(value):
        raise InvalidInput(f"{field} contains half a surrogate pair (a cut emoji); send whole characters.", field=field)


def clean_text(value: str, *, field: str, maximum: int, minimum: int = 0) -> str:
    """The value unchanged, when Postgres can store it and its length is accepted.

    `maximum` counts code points of the value, `minimum` those left after stripping white space at both ends.
    Raises InvalidInput for NUL, a lone surrogate, or a length outside the bounds.
    """
    if len(value) > maximum:
        raise InvalidInput(f"{field} has {len(value)} characters; at most {maximum} are accepted.", field=field)
    _refuse_unstorable(value, field)
    if minimum and len(value.strip()) < minimum:
        wanted = "must not be empty" if minimum == 1 else f"needs at least {minimum} characters"
        raise InvalidInput(f"{field} {wanted}.", field=field)
    return value


def clean_key(value: str, *, field: str) -> str:
    """A caller's stable name as it is stored: NFC, without invisible characters, trimmed, 1 to 200 characters.

    Case is kept; compare keys by `fold`. Raises InvalidInput for control characters, lone surrogates, an empty or
    a longer name.
    """
    _refuse_unstorable(value, field)
    key = normalize("NFC", INVISIBLE.sub("", value)).strip()
    if not key:
        raise InvalidInput(f"{field} must not be empty.", field=field)
    if len(key) > KEY_MAXIMUM:
        raise InvalidInput(f"{field} has {len(key)} characters; at most {KEY_MAXIMUM} are accepted.", field=field)
    if _CONTROL.search(key):
        raise InvalidInput(f"{field} must be one line without control characters.", field=field)
    return key


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], value: str) -> str:
    """`unicodedata.normalize` in linear time: runs of combining marks are cut to 30, as in the stream-safe format."""
    if value.isascii():
        return value
    marks = "".join(sorted(c for c in set(value) if unicodedata.combining(c)))
    if marks:
        value = re.sub(f"([{marks}]{{30}})[{marks}]+", r"\1", value)
    return unicodedata.normalize(form, value)


def _fold_once(value: str) -> str:
    visible = INVISIBLE.sub("", normalize("NFKC", value))
    return " ".join(normalize("NFKC", visible.casefold()).split())


def fold(value: str) -> str:
    """The lookup form of a name: NFKC, casefold, invisible characters stripped, white space collapsed. Idempotent."""
    folded = _fold_once(value)
    while (again := _fold_once(folded)) != folded:  # a few code points need a second pass to settle
        folded = again
    return folded


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def slug(value: str, *, field: str) -> str:
    """A name as an identifier of a scope or a page: the fold with every run of separators as one `-`. Idempotent.

    Letters, digits and combining marks of every script are kept, and so are `+` and `#`, which alone tell C++ from C#.
    Everything else (space, `_ . / \\ : -`, other punctuation and symbols) separates.
    Raises InvalidInput when no letter or digit is left, or more than 100 characters.
    """
    _refuse_unstorable(value, field)
    name = "".join(c if c in "+#" or _is_letter(c) else "-" for c in fold(value))
    name = "-".join(part for part in name.split("-") if part)
    if not any(unicodedata.category(c)[0] in "LN" for c in name):
        raise InvalidInput(f"{field} needs a name with at least one letter or digit.", field=field)
    if len(name) > SLUG_MAXIMUM:
        raise InvalidInput(f"{field} names {len(name)} characters; at most {SLUG_MAXIMUM} are accepted.", field=field)
    return name


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Where inside a brain a row belongs; `id` is empty for the global scope."""

    kind: ScopeKind
    id: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else self.kind


GLOBAL: Final = Scope("global")


def parse_scope(text: str, *, field: str) -> Scope:
    """Read `global`, `lane:NAME` or `project:NAME` in any case; InvalidInput shows the accepted forms."""
    _refuse_unstorable(text, field)
    kind, colon, name = (part.strip() for part in fold(text).partition(":"))
    if kind == "global" and not colon:
        return GLOBAL
    if name and kind == "lane":
        return Scope("lane", slug(name, field=field))
    if name and kind == "project":
        return Scope("project", slug(name, field=field))
    raise InvalidInput(
        f"{field} must be {SCOPE_FORMS}, not '{excerpt(text)}'.", field=field, hint=_scope_hint(name if colon else kind)
    )


def _scope_hint(bare: str) -> str:
    try:
        name = slug(bare, field="scope")
    except InvalidInput:
        name = ""
    if name in {"", "lane", "project", "global"}:
        return "For example lane:work or project:kestrel."
    return f"Did you mean lane:{name} or project:{name}?"


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known names that `word` is a near miss of, nearest first, then by name; at most five.

    Two different names are near misses when, without case, accents and separators, they are equal; when one is the
    other plus more words (kestrel, kestrel-dashboard) and has at least three letters; or when the words in which they
    differ have at least five letters and are one edit apart, two from eight letters up (an edit inserts, drops or
    replaces a letter or swaps two neighbours). Names that differ in a number are never near misses (q1 and q2, 2025
    and 2026), nor are names that differ in a short word (client-a and client-b, api and app).
    """
    parts = _parts(word)
    ranked = ((_distance(parts, _parts(name)), name) for name in set(known))
    return [name for rank, name in sorted((d, n) for d, n in ranked if d is not None)][:5]


def _parts(name: str) -> tuple[str, ...]:
    spaced = "".join(c if c in "+#" or _is_letter(c) else " " for c in fold(name))
    return tuple(spaced.split())


def _unaccented(name: str) -> str:
    return _ACCENT.sub("", unicodedata.normalize("NFD", name))


def _distance(left: tuple[str, ...], right: tuple[str, ...]) -> int | None:
    """How far apart two names are: 0 to 2 edits, 3 for an extension, None when they are no near misses."""
    one, other = "".join(left), "".join(right)
    if left == right or not one or not other or _DIGITS.findall(one) != _DIGITS.findall(other):
        return None
    if _unaccented(one) == _unaccented(other):
        return 0
    shorter, longer = sorted((left, right), key=len)
    if len(shorter) < len(longer):
        if longer[: len(shorter)] == shorter and len("".join(shorter)) >= 3:
            return 3
        return _word_distance(one, other)
    edits = [_word_distance(a, b) for a, b in zip(left, right, strict=True) if a != b]
    total = sum(edit or 0 for edit in edits)
    return None if None in edits or total > 2 else total


def _word_distance(one: str, other: str) -> int | None:
    size = max(len(one), len(other))
    allowed = 0 if size < 5 else 1 if size < 8 else 2
    if abs(len(one) - len(other)) > allowed:
        return None
    edits = _edits(one, other)
    return edits if edits <= allowed else None


def _edits(one: str, other: str) -> int:
    """Optimal string alignment distance (Levenshtein with swaps of neighbours)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
