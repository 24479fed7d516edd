"""Any row of any layer by its ref."""

from __future__ import annotations

from brain.errors import NotFound
from brain.layers import Layer, Version, layer_named
from brain.names import excerpt
from brain.repository import versions
from brain.services import history, inputs
from brain.work import Work


async def find(
    work: Work, name: str, *, valid_at: inputs.Instant = None, for_human: bool = False
) -> tuple[Layer, Version]:
    """Return the row that a ref or a fact's key names, at its version if the ref has one.

    Raises NotFound when it is not visible, and Refused for the failure log unless a human asks.
    """
    ref = await history.resolve(work, name)
    layer = layer_named(ref.layer, field="ref") if for_human else inputs.readable_layer(ref, field="ref")
    row: Version | None
    if ref.version:
        stamped = [each.row for each in await versions.history(work, layer, ref.id)]
        row = next((each for each in stamped if each.version == ref.version), None)
    else:
        moment = inputs.instant(work, valid_at, field="valid_at") if layer.valid_time else None
        row = await versions.get(work, layer, ref.id, valid_at=moment)
    if row is None:
        raise NotFound(
            f"ref {excerpt(name)} names nothing that is visible at that instant.",
            hint="History shows what was retired, forgotten or has ended.",
            field="ref",
        )
    return layer, row
