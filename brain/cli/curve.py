"""The curve of a calibration: bars in a terminal, and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from brain.services.calibration import KEPT, NOTHING, Point, Report

_CELLS = 24
_WIDTH, _HEIGHT = 720, 420
_LEFT, _TOP, _RIGHT, _BOTTOM = 64, 56, 24, 64
_KEPT_INK, _ANSWERED_INK, _INK, _FAINT = "#2f6396", "#a85f00", "#333333", "#cccccc"


def bars(report: Report) -> list[str]:
    """Return one line a floor: how much of what should be found is kept, and of what should not is answered."""
    lines = [f"{'floor':>7}  {'true hits kept':<{_CELLS + 7}}  should find nothing, answered"]
    for point in report.curve:
        kept, answered = shares(report, point)
        lines.append(f"{point.floor:>7.3f}  {_bar(kept)} {kept:>6.1%}  {_bar(answered)} {answered:>6.1%}")
    return lines


def shares(report: Report, point: Point) -> tuple[float, float]:
    """Return the share of true hits that a floor keeps, and of foreign questions that it answers."""
    return point.kept / report.hits, point.answered / report.foreigners


def picture(report: Report) -> str:
    """Return the curve as an SVG drawing."""
    body = "\n".join([*_frame(report), *_lines(report), *_chosen(report), *_legend(report)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        f' font-size="12" role="img">\n<title>The honesty floor of {escape(report.model)}</title>\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _bar(share: float) -> str:
    return ("█" * round(share * _CELLS)).ljust(_CELLS, "·")


def _x(report: Report, floor: float) -> float:
    least, most = report.curve[0].floor, report.curve[-1].floor
    return _LEFT + (floor - least) / (most - least) * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM)


def _frame(report: Report) -> Iterator[str]:
    yield _text(_LEFT, 24, f"Honesty floor of {report.model}", size=15)
    for percent in range(0, 101, 20):
        y = _y(percent / 100)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="{_FAINT}"/>'
        yield _text(_LEFT - 8, y + 4, f"{percent} %", anchor="end")
    for point in report.curve[::2]:
        yield _text(_x(report, point.floor), _HEIGHT - _BOTTOM + 18, f"{point.floor:.2f}", anchor="middle")


def _lines(report: Report) -> Iterator[str]:
    for ink, which in ((_KEPT_INK, 0), (_ANSWERED_INK, 1)):
        places = [(_x(report, point.floor), _y(shares(report, point)[which])) for point in report.curve]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{joined}" fill="none" stroke="{ink}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{ink}"/>' for x, y in places)


def _chosen(report: Report) -> Iterator[str]:
    x = _x(report, report.chosen.floor)
    yield (
        f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="{_INK}" stroke-dasharray="4 3"/>'
    )
    yield _text(x, _TOP - 8, f"chosen {report.chosen.floor:.2f}", anchor="middle")


def _legend(report: Report) -> Iterator[str]:
    y = _HEIGHT - 18
    yield _text(_LEFT, y, f"— true hits kept (of {report.hits}, aim {KEPT:.0%})", ink=_KEPT_INK)
    told = f"— should find nothing, answered (of {report.foreigners}, aim {1 - NOTHING:.0%})"
    yield _text(_WIDTH / 2 - 20, y, told, ink=_ANSWERED_INK)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, ink: str = _INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{ink}">{escape(text)}</text>'
