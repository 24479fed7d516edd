"""weigh_claims."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from brain.render import quoted
from brain.services import claims
from brain.times import format_instant
from brain.tools.common import Arguments, AsOf, Brain, Result
from brain.tools.protocol import AnyTool, Tool
from brain.trust import Claim


class ReadClaim(Arguments):
    """What was read at one ref."""

    ref: str = Field(description="layer:id of a stored row")
    value: str = Field(description="The value read there, as short as it can be")


class WeighClaims(Arguments):
    """Claims about one question."""

    claims: list[ReadClaim] = Field(default=[], description="What stored rows say")
    recall: str = Field(default="", description="What you remember yourself, if anything")
    as_of: AsOf = ""


async def weigh_claims(brain: Brain, given: WeighClaims) -> Result:
    """Weigh claims by the trust order."""
    pairs = [(each.ref, each.value) for each in given.claims]
    weighed = await brain.read(lambda work: claims.weigh(work, claims=pairs, recall=given.recall), as_of=given.as_of)
    verdict = weighed.verdict
    lines = [f"{verdict.outcome.upper()}: {verdict.reason}"]
    if verdict.winner is not None:
        lines += [f"Cite {verdict.winner.ref} ({_dated(verdict.winner)}):", quoted(verdict.winner.value)]
    else:
        for side in verdict.sides:
            lines += [f"- {', '.join(f'{claim.ref} ({_dated(claim)})' for claim in side)}:", quoted(side[0].value)]
    lines += [f"Flag {flag.ref}: {flag.message}" for flag in verdict.flags]
    lines += [verdict.advice] if verdict.advice else []
    data = {
        "outcome": verdict.outcome,
        "winner": _shown(verdict.winner) if verdict.winner else None,
        "sides": [[_shown(claim) for claim in side] for side in verdict.sides],
        "flags": [{"ref": flag.ref, "message": flag.message, "newer": flag.newer} for flag in verdict.flags],
        "agreeing": list(verdict.agreeing),
        "disagreeing": list(verdict.disagreeing),
        "reason": verdict.reason,
        "advice": verdict.advice,
    }
    return Result("\n".join(lines), data)


def _shown(claim: Claim) -> dict[str, Any]:
    return {
        "ref": claim.ref,
        "layer": str(claim.layer),
        "value": claim.value,
        "at": format_instant(claim.at) if claim.at else None,
    }


def _dated(claim: Claim) -> str:
    return format_instant(claim.at) if claim.at else "undated"


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "weigh_claims",
        "Weigh claims",
        "When sources disagree: give the refs with the value read at each, and your own recall if you have one."
        " The server looks up layers and dates and says which to cite, or that the answer is contested.",
        WeighClaims,
        weigh_claims,
        reads_only=True,
    ),
)
