"""Draw docs/figures/time-*.svg: one fact on both time axes, written to a temporary brain and read back from it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from pydantic import SecretStr

from brain import embedded, migrate, runtime
from brain.config import Settings
from brain.layers import LAYERS, Fact
from brain.repository import versions
from brain.runtime import Brain
from brain.services import history
from brain.times import Assertion, Interval, Rectangle, rectangles
from brain.tools import catalogue

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
KEY: Final = "studio-rent"
FIRST, LAST, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)
MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct"
POINTS: Final = {
    "A": ("2026-02-15", "2026-02-15"),
    "B": ("2026-03-15", "2026-02-15"),
    "C": ("2026-03-25", "2026-06-15"),
    "D": ("2026-05-10", "2026-07-15"),
    "E": ("2026-07-15", "2026-07-15"),
    "F": ("2026-07-15", "2026-08-15"),
}
"""Questions of the second picture: as of, and valid at."""

FILLS: Final = ("#cfe0f3", "#fddfb8", "#cdeac8", "#e4e4e4")
INKS: Final = ("#2f6396", "#a85f00", "#2f7a2b", "#666666")
WIDTH: Final = 900


@dataclass(frozen=True, slots=True)
class Bar:
    """One assertion as the brain tells it."""

    version: int
    label: str
    assertion: Assertion


@dataclass(frozen=True, slots=True)
class Story:
    """What was read back: the log of one fact, where each assertion is visible, and answers at points of both axes."""

    bars: list[Bar]
    visible: list[Rectangle]
    answers: dict[tuple[datetime, datetime], str]

    def bar_of(self, doc: int) -> Bar:
        """Return the assertion with a document number."""
        return next(bar for bar in self.bars if bar.assertion.doc == doc)


async def tell(dsn: str) -> Story:
    """Write the history of one fact under a clock that is set for each write, and read it back."""
    brain = runtime.open_brain(Settings(database_url=SecretStr(dsn)), origin="model", client="figures")
    try:
        await _write(brain, dsn)
        _set_clock(dsn, LAST)
        past = await brain.read(lambda work: history.of(work, KEY))
        bars = [_bar(each.row) for each in past.versions]
        visible = rectangles([bar.assertion for bar in bars])
        answers = {point: await _answer(brain, *point) for point in [*map(_point, POINTS), *_grid()]}
    finally:
        await brain.close()
    return Story(bars, visible, answers)


async def _write(brain: Brain, dsn: str) -> None:
    tools = {tool.name: tool for tool in catalogue.ALL}
    rent = {"key": KEY, "scope": "lane:work"}
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("2026-01-10", "write_memory", rent | {"text": "900 a month", "valid_from": "2026-01-01"}),
        ("2026-03-05", "amend_memory", {"ref": KEY, "text": "700 in February", "valid_from": "2026-02-01",
                                        "valid_to": "2026-03-01", "expected_version": 1, "reason": "a discount"}),
        ("2026-04-20", "write_memory", rent | {"text": "950 from May on", "valid_from": "2026-05-01",
                                               "expected_version": 2}),
        ("2026-06-10", "forget_memory", {"ref": KEY, "reason": "no rent in July", "valid_from": "2026-07-01",
                                         "valid_to": "2026-08-01"}),
    ]  # fmt: skip
    for day, tool, arguments in steps:
        _set_clock(dsn, _day(day))
        await tools[tool].answer(brain, arguments)


def _set_clock(dsn: str, moment: datetime) -> None:
    """Let the database's clock stand at an instant."""
    clock = "CREATE OR REPLACE FUNCTION brain_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS {}"
    with psycopg.connect(dsn) as connection:
        body = f"SELECT timestamptz '{moment.isoformat()}'"
        connection.execute(sql.SQL(clock).format(sql.Literal(body)))


async def _answer(brain: Brain, as_of: datetime, valid_at: datetime) -> str:
    """Return what the brain says at a point, or nothing."""
    fact: Fact | None = await brain.read(
        lambda work: versions.first(work, LAYERS["memory"], "AND t.key = %(key)s", {"key": KEY}, valid_at=valid_at),
        as_of=as_of,
    )
    return "" if fact is None else fact.text


def _bar(row: Any) -> Bar:
    label = f"forgotten: {row.reason}" if row.tombstone else row.text
    claim = Assertion(row.doc, row.known_from, Interval(row.valid_from, row.valid_to), row.tombstone)
    return Bar(row.version, label, claim)


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _point(name: str) -> tuple[datetime, datetime]:
    as_of, valid_at = POINTS[name]
    return _day(as_of), _day(valid_at)


def _month(number: int) -> datetime:
    return datetime(2026, number, 1, tzinfo=UTC)


def _grid() -> list[tuple[datetime, datetime]]:
    """Questions of the third picture: as of the first of a month, about the middle of each month."""
    return [(_month(known), _month(held).replace(day=15)) for known in range(2, 9) for held in range(1, 10)]


class Drawing:
    """An SVG picture, line by line; coordinates are rounded so that every machine writes the same bytes."""

    def __init__(self, height: int, title: str) -> None:
        self._height = height
        self._lines = [f"<title>{escape(title)}</title>", f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, ink: str, *, dashed: bool = False
    ) -> None:
        """Draw a rectangle."""
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self._lines.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"'
            f' stroke="{ink}"{dash}/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, ink: str = "#d9d9d9", *, dashed: bool = False) -> None:
        """Draw a straight line."""
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self._lines.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink}"{dash}/>')

    def text(self, x: float, y: float, words: str, *, ink: str = "#222222", anchor: str = "start", size: int = 13,
             bold: bool = False) -> None:  # fmt: skip
        """Write words at a point."""
        weight = ' font-weight="bold"' if bold else ""
        self._lines.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}" text-anchor="{anchor}" font-size="{size}"{weight}>'
            f"{escape(words)}</text>"
        )

    def point(self, x: float, y: float, name: str) -> None:
        """Draw a named point."""
        self._lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="#222222"/>')
        self.text(x, y + 4.5, name, ink="#ffffff", anchor="middle", bold=True)

    def finished(self) -> str:
        """Return the picture."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}" width="{WIDTH}"'
            f' height="{self._height}" font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" role="img">'
        )
        return "\n".join([head, *self._lines, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class Axis:
    """Where an instant lies between two pixels."""

    start: float
    end: float
    first: datetime
    last: datetime

    def at(self, instant: datetime | None, otherwise: datetime) -> float:
        """Return the place of an instant, or of another where it is unbounded."""
        share = ((instant or otherwise) - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def months(self) -> Iterable[tuple[str, datetime]]:
        """Return the first of each month that the axis shows."""
        for number, name in enumerate(MONTHS.split(), 1):
            if self.first <= _month(number) <= self.last:
                yield name, _month(number)


def assertions(story: Story) -> str:
    """Draw each assertion as a bar over the time for which it speaks, in the order in which it became known."""
    picture = Drawing(330, "Four assertions about one fact, as bars over valid time")
    axis = Axis(150, 870, FIRST, LAST)
    picture.text(20, 28, "What was asserted, in the order in which it became known", bold=True, size=15)
    for name, month in axis.months():
        x = axis.at(month, FIRST)
        picture.line(x, 48, x, 290)
        picture.text(x, 306, name, anchor="middle", size=12)
    for place, bar in enumerate(story.bars):
        y = 58 + 58 * place
        left, right = axis.at(bar.assertion.valid.start, FIRST), axis.at(bar.assertion.valid.end, LAST)
        picture.rect(left, y, right - left, 40, FILLS[place], INKS[place], dashed=bar.assertion.tombstone)
        known = bar.assertion.known_from
        picture.text(20, y + 17, f"version {bar.version}", bold=True, ink=INKS[place])
        picture.text(20, y + 34, f"known {known.day} {MONTHS.split()[known.month - 1]}", size=12)
        inside = right - left > 9 * len(bar.label)
        picture.text(left + 10 if inside else right + 10, y + 25, bar.label)
        if bar.assertion.valid.end is None:
            picture.text(right - 8, y + 25, "open →", anchor="end", ink=INKS[place])
    picture.text(870, 324, "valid time: when it holds in the world (2026)", anchor="end", size=12)
    return picture.finished()


def plane(story: Story) -> str:
    """Draw where each assertion is visible, valid time to the right and system time upwards, with some questions."""
    picture = Drawing(560, "Where each assertion is visible: valid time by system time")
    across, up = Axis(110, 870, FIRST, LAST), Axis(490, 60, FIRST, NOW)
    picture.text(20, 28, "Which version is visible where", bold=True, size=15)
    for rectangle in story.visible:
        bar = story.bar_of(rectangle.doc)
        place = bar.version - 1
        left, right = across.at(rectangle.valid.start, FIRST), across.at(rectangle.valid.end, LAST)
        low, high = up.at(rectangle.known_from, FIRST), up.at(rectangle.known_to, NOW)
        picture.rect(left, high, right - left, low - high, FILLS[place], INKS[place])
        label = f"v{bar.version}" if right - left < 120 else f"v{bar.version}: {bar.label}"
        # Wide ones are named on the right, clear of the diagonal.
        side, anchor = (right - 8, "end") if right - left > 300 else (left + 8, "start")
        picture.text(side, high + 18, label, ink=INKS[place], size=12, anchor=anchor)
    for name, month in across.months():
        picture.line(across.at(month, FIRST), 490, across.at(month, FIRST), 495, "#222222")
        picture.text(across.at(month, FIRST), 510, name, anchor="middle", size=12)
    for name, month in up.months():
        picture.line(105, up.at(month, FIRST), 110, up.at(month, FIRST), "#222222")
        picture.text(98, up.at(month, FIRST) + 4, name, anchor="end", size=12)
    picture.line(
        across.at(FIRST, FIRST), up.at(FIRST, FIRST), across.at(NOW, NOW), up.at(NOW, NOW), "#222222", dashed=True
    )
    picture.text(across.at(NOW, NOW), 52, "valid_at = as_of: what an ordinary read asks", anchor="middle", size=12)
    for name in POINTS:
        as_of, valid_at = _point(name)
        picture.point(across.at(valid_at, FIRST), up.at(as_of, FIRST), name)
    picture.text(870, 528, "valid time: valid_at (2026)", anchor="end", size=12)
    picture.text(20, 48, "system time: as_of", size=12)
    for place, name in enumerate(POINTS):
        said = story.answers[_point(name)] or "nothing"
        picture.text(20 + 147 * place, 550, f"{name}: {said}", size=12, bold=True)
    return picture.finished()


def answers(story: Story) -> str:
    """Draw what the brain answers, one row for each instant at which it is asked and one cell for each month."""
    picture = Drawing(330, "What the brain answers about each month, as of the first of each month")
    picture.text(20, 28, "What the brain answers", bold=True, size=15)
    cell, top = 80, 60
    colours = {bar.label: bar.version - 1 for bar in story.bars}
    for (as_of, valid_at), text in story.answers.items():
        if as_of.day != 1:
            continue
        x, y = 140 + cell * (valid_at.month - 1), top + 32 * (8 - as_of.month)
        place = colours.get(text, len(FILLS) - 1)
        picture.rect(x, y, cell, 32, FILLS[place] if text else "#ffffff", "#bbbbbb")
        picture.text(x + cell / 2, y + 21, text.split()[0] if text else "–", anchor="middle", ink=INKS[place])
    for number, name in enumerate(MONTHS.split()[:9], 1):
        picture.text(140 + cell * (number - 0.5), 302, f"15 {name}", anchor="middle", size=12)
        if 2 <= number <= 8:
            picture.text(128, top + 32 * (8 - number) + 21, f"as of 1 {name}", anchor="end", size=12)
    picture.text(860, 322, "valid_at (2026)", anchor="end", size=12)
    return picture.finished()


def pictures(story: Story) -> dict[str, str]:
    """Return every picture by the name of its file."""
    return {
        "time-assertions.svg": assertions(story),
        "time-plane.svg": plane(story),
        "time-answers.svg": answers(story),
    }


def main() -> int:
    """Write the pictures."""
    with embedded.temporary() as server:
        migrate.upgrade(server.dsn)
        drawn = pictures(asyncio.run(tell(server.dsn)))
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
