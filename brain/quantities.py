"""Numbers, dates and times in running text: the forms under which text analysis finds them by value."""

from __future__ import annotations

import re
from typing import Final

_QUANTITY: Final = re.compile(r"([^\W\d_]*)(\d+(?:[.,']\d+)*)([^\W\d_]*)")
_DATE: Final = re.compile(
    r"(\d{4})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?:T(\d\d:\d\d)[\d:.]*(?:Z|[-+]\d\d:?\d\d)?)?",
    re.IGNORECASE,
)
_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_CLOCK: Final = re.compile(r"(\d{1,2})(:[0-5]\d(?::[0-5]\d)?)([ap]m)?", re.IGNORECASE)
_COMMA_GROUPS: Final = re.compile(r"(\d{1,3}(?:,\d{2,3})*,\d{3})(?:\.(\d+))?")
_POINT_GROUPS: Final = re.compile(r"(\d{1,3}(?:\.\d{3})+),(\d+)|(\d{1,3}(?:\.\d{3}){2,})")
_QUOTE_GROUPS: Final = re.compile(r"(\d{1,3}(?:'\d{3})+)(?:[.,](\d+))?")
_DECIMAL: Final = re.compile(r"(\d+)[.,](\d+)")
_VERSION: Final = re.compile(r"\d{1,2}\.(?:\d|(?!0+$)\d+)|0\d*\.\d+|(?:19|2[01])\d\d\.(?:0\d|1[0-2])")
_AMBIGUOUS: Final = re.compile(r"([1-9]\d{0,2})([.,])(\d{3})")
_SEPARATOR: Final = re.compile(r"[.,']")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def quantity(text: str) -> tuple[str, str, str] | None:
    """The letters before, the number, and the letters after, for a number with a prefix or a unit; else None."""
    match = _QUANTITY.fullmatch(text)
    return (match[1], match[2], match[3]) if match else None


def identity(text: str) -> list[str]:
    """A UUID as itself, because its groups say nothing; nothing for any other text."""
    return [text.casefold()] if _UUID.fullmatch(text) else []


def moment(text: str) -> list[str]:
    """A date as itself, its month and its year; a time of day or a span of it; nothing for any other text."""
    if not text[0].isdigit():
        return []
    if match := _DATE.fullmatch(text):
        year, _, month, day, clock = match.groups()
        date = [f"{year}-{month:0>2}-{day:0>2}", f"{year}-{month:0>2}", year]
        return [text.casefold(), *date, clock] if clock else date
    if match := _MONTH.fullmatch(text):
        return [text, match[1]]
    clocks = [_clock(part) for part in text.split("-")]
    return [term for clock in clocks for term in clock] if all(clocks) else []


def _clock(text: str) -> list[str]:
    match = _CLOCK.fullmatch(text)
    if not match:
        return []
    hours, minutes, half = match.groups()
    return [f"{hours.lstrip('0') or '0'}{minutes}", *([half.casefold()] if half else [])]


def numbers(text: str, *, decimal_comma: bool) -> list[str]:
    """A number by its value, and as written where the form may mean something else (0042, 3.10, 1.200, 1.2.3)."""
    if text.isdecimal():
        return list(dict.fromkeys((text, _value(text))))
    if match := _AMBIGUOUS.fullmatch(text):
        whole, sign, rest = match.groups()
        as_decimal = sign == "." or decimal_comma
        return [*([_value(whole, rest)] if as_decimal else []), whole + rest]
    if match := _COMMA_GROUPS.fullmatch(text) or _QUOTE_GROUPS.fullmatch(text):
        return _decimal(match[1], match[2] or "")
    if match := _POINT_GROUPS.fullmatch(text):
        return _decimal(match[1], match[2]) if match[1] else [text, _value(match[3])]
    if match := _DECIMAL.fullmatch(text):
        return _decimal(match[1], match[2])
    return [text, *(_value(part) for part in _SEPARATOR.split(text))]


def _decimal(whole: str, fraction: str) -> list[str]:
    """A decimal number by its value, and without groups as written where it may be a version: 3.10, 3.0, 2024.10."""
    digits = _SEPARATOR.sub("", whole)
    as_version = _VERSION.fullmatch(f"{digits}.{fraction}")
    return list(dict.fromkeys((*([as_version[0]] if as_version else []), _value(whole, fraction))))


def _value(whole: str, fraction: str = "") -> str:
    digits = _SEPARATOR.sub("", whole).lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{digits}.{fraction}" if fraction else digits
