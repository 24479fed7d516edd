"""Commands about the embedding model of a brain: reindex, calibrate."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from brain.cli import curve
from brain.cli.command import Scope, command
from brain.cli.output import Answer, Screen, print_line, progress
from brain.errors import InvalidInput
from brain.render import counted
from brain.repository import search, vector_index
from brain.repository.vector_index import Built
from brain.runtime import Brain
from brain.services import calibration, reindex
from brain.services.calibration import Report

Told = Callable[[int, int], None]

_LINE_EVERY = 2.0
"""Seconds between two lines of progress where no bar is drawn."""
_LONGEST_FILE = 2_000_000


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "reindex", embed_again)
    command(app, "calibrate", calibrate)


async def embed_again(
    brain: Brain,
    index: Annotated[
        bool, typer.Option("--index", help="Build the approximate index also where every vector is compared quickly.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be embedded, and stop.")] = False,
) -> Answer:
    """Embed everything with the configured model and switch to it; goes on where it was interrupted.

    Other processes read and write with the model before until the switch, and are refused after it.
    """
    batch = max(reindex.BATCH, brain.settings.embed_batch)
    if dry_run:
        return await _estimated(brain, batch)
    with _watched("Embedding", "text") as told:
        report = await reindex.run(brain.read, brain.write, brain.embedder, progress=told, batch=batch)
    built = await _indexed(brain, report, wanted=index)
    data = {
        "model": brain.embedder.model,
        **asdict(report),
        "index": {"state": built.state, "reason": built.reason} if built else {"state": "not_needed", "reason": ""},
    }
    warnings = (
        [f"There is no approximate index: {built.reason} Searches compare every vector."]
        if built and built.state != "ready"
        else []
    )
    return Answer(data, lambda screen: _show_run(screen, brain, report, built), warnings)


async def calibrate(
    brain: Brain,
    scope: Scope = "",
    negatives: Annotated[
        str, typer.Option("--negatives", metavar="FILE", help="Questions that should find nothing, one a line.")
    ] = "",
    picture: Annotated[str, typer.Option("--picture", metavar="FILE", help="Draw the curve into this SVG file.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure and store nothing.")] = False,
) -> Answer:
    """Measure the honesty floor on this brain's own facts, and let it hold from now on.

    Questions made of facts should find them; those made of facts of other scopes, or of a file, should find nothing.
    """
    foreign = _questions(negatives) if negatives else []
    with _watched("Asking", "question") as told:
        report = await calibration.measure(brain.read, brain.embedder, scope=scope, foreign=foreign, progress=told)
    if picture:
        _draw(picture, report)
    if not dry_run:
        await brain.write(lambda work: calibration.store(work, report))
    return Answer(_data(report, stored=not dry_run), lambda screen: _show_curve(screen, report, stored=not dry_run))


async def _estimated(brain: Brain, batch: int) -> Answer:
    found = await reindex.estimate(brain.read, brain.embedder, batch=batch)
    sentence = (
        f"{brain.embedder.model} would embed {counted(found.texts, 'text')} of {counted(found.characters, 'character')}"
        f" in {counted(found.requests, 'request')}. Nothing was sent."
    )
    data = {"model": brain.embedder.model, "dry_run": True, **asdict(found)}
    return Answer(data, lambda screen: screen.line(sentence))


async def _indexed(brain: Brain, report: reindex.Report, *, wanted: bool) -> Built | None:
    """Build the index where it is wanted or pays, and there is something to index."""
    if not report.facts or not (wanted or report.facts > search.EXACT_ROWS):
        return None
    with progress("Indexing") as bar:
        bar.add_task("Indexing", total=None)
        return await vector_index.build(brain.database, brain.embedder.model, brain.embedder.dimensions)


def _show_run(screen: Screen, brain: Brain, report: reindex.Report, built: Built | None) -> None:
    model = brain.embedder.model
    if not report.texts:
        screen.line("No facts yet.")
    elif report.embedded:
        screen.line(f"Embedded {report.embedded} of {counted(report.texts, 'text')}.")
    else:
        screen.line(f"Every one of {counted(report.texts, 'text')} had its vector.")
    screen.line(f"Switched to {model}." if report.switched else f"The model is {model}, as before.")
    if built is not None and built.state == "ready":
        screen.line("The approximate index is ready.")


def _questions(name: str) -> list[str]:
    try:
        path = Path(name)
        if path.stat().st_size > _LONGEST_FILE:
            raise InvalidInput(f"negatives must be a file of at most {_LONGEST_FILE} bytes.", field="negatives")
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError):
        raise InvalidInput("negatives must be a readable UTF-8 file, one question a line.", field="negatives") from None
    found = [line for line in lines if line]
    if not found:
        raise InvalidInput("negatives must name a file with one question a line; this one is empty.", field="negatives")
    return found


def _draw(name: str, report: Report) -> None:
    try:
        Path(name).write_text(curve.picture(report), encoding="utf-8")
    except OSError:
        raise InvalidInput("picture must be a file that can be written.", field="picture") from None


def _data(report: Report, *, stored: bool) -> dict[str, Any]:
    def told(point: calibration.Point) -> dict[str, Any]:
        kept, answered = curve.shares(report, point)
        return {"floor": point.floor, "kept": round(kept, 4), "answered": round(answered, 4)}

    return {
        "model": report.model,
        "analysis": report.analysis,
        "scopes": report.scopes,
        "hits": report.hits,
        "missed": report.missed,
        "foreign": report.foreigners,
        "default_floor": report.default,
        "curve": [told(point) for point in report.curve],
        "before": told(report.current),
        "chosen": told(report.chosen),
        "aims_reached": report.reached,
        "stored": stored,
    }


def _show_curve(screen: Screen, report: Report, *, stored: bool) -> None:
    for line in curve.bars(report):
        screen.line(line)
    kept, answered = curve.shares(report, report.chosen)
    screen.line()
    screen.heading(f"Floor {report.chosen.floor:g} for {report.model} ({'stored' if stored else 'not stored'})")
    lost = report.hits - report.chosen.kept
    screen.line(
        f"It keeps {kept:.1%} of the true hits ({lost} of {report.hits} are lost) and answers {answered:.1%} of the"
        f" questions that should find nothing ({report.chosen.answered} of {report.foreigners})."
    )
    before, answered_before = curve.shares(report, report.current)
    screen.line(f"The floor before, {report.current.floor:g}: {before:.1%} kept, {answered_before:.1%} answered.")
    if not report.reached:
        screen.line(f"No floor keeps {calibration.KEPT:.0%} while {calibration.NOTHING:.0%} find nothing.")
    if report.missed:
        screen.line(f"{counted(report.missed, 'fact')} would not be among the first {calibration.PLACES} at any floor.")
    screen.line("The questions use words of their own facts; real ones share fewer, so fewer of them are kept.")


@contextmanager
def _watched(title: str, things: str) -> Iterator[Told]:
    """Tell progress: a bar on a terminal, otherwise a line now and then on standard error."""
    with progress(title) as bar:
        task = bar.add_task(title, total=None)
        said = time.monotonic()

        def told(done: int, total: int) -> None:
            nonlocal said
            bar.update(task, completed=done, total=total)
            if bar.disable and time.monotonic() - said >= _LINE_EVERY:
                said = time.monotonic()
                print_line(sys.stderr, f"{title}: {done} of {counted(total, things)}")

        yield told
