"""Scripts: one class letter for each character, so that plain patterns can cut a text where its script changes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

_BY_NAME: Final = {
    "LATIN": "lu", "CYRILLIC": "cC", "GREEK": "eE", "CJK": "h", "HIRAGANA": "h", "KATAKANA": "h", "BOPOMOFO": "h",
    "IDEOGRAPHIC": "h", "KATAKANA-HIRAGANA": "h", "HANGUL": "g", "THAI": "t", "LAO": "w", "KHMER": "x", "MYANMAR": "y",
}  # fmt: skip


def _class_of(char: str) -> str:
    category = unicodedata.category(char)
    if char.isascii() and category[0] in "PS":
        return char
    if category[0] == "L" or category == "Nl":
        pair = _BY_NAME.get(unicodedata.name(char, "").partition(" ")[0], "o")
        return pair[-1] if category in ("Lu", "Lt") else pair[0]
    if char == "\u200d":
        return "z"
    if category[0] in "SC" and category not in ("Cc", "Cf", "Cs"):
        return "f" if "\U0001f3fb" <= char <= "\U0001f3ff" else "r" if "\U0001f1e6" <= char <= "\U0001f1ff" else "s"
    return {"M": "m", "N": "d"}.get(category[0], " ")


class _Classes(dict[int, str]):
    def __missing__(self, point: int) -> str:
        self[point] = _class_of(chr(point))
        return self[point]


_CLASSES: Final = _Classes()
_SCRIPT: Final = re.compile("[^lucCeEohgtwxy]")
_ONE_CASE: Final = str.maketrans("uCE", "lce")


def classes(text: str) -> str:
    """A string of the same length with the class of each character.

    l u Latin lower and upper, c C Cyrillic, e E Greek, o other letters, d digit, m mark, h Han and Kana, g Hangul,
    t Thai, w Lao, x Khmer, y Myanmar, s symbol, f skin tone, r regional indicator, z joiner; ASCII signs are
    themselves, a space is anything else.
    """
    return text.translate(_CLASSES)


def main_script(text: str) -> str:
    """The class of most letters of a text, in lower case for scripts that have it; empty for a text without letters."""
    letters = Counter(_SCRIPT.sub("", classes(text)).translate(_ONE_CASE))
    return max(sorted(letters), key=letters.__getitem__, default="")
