"""How much memory the embedded Postgres may take for its pages."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

LEAST, MOST = 128 * 2**20, 2 * 2**30
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def shared_buffers() -> str:
    """What a server may keep in memory: an eighth of what there is, from 128 MB to 2 GB; taken as it is used."""
    memory = psutil.virtual_memory().total
    with suppress(OSError, ValueError):  # unlimited is the word max
        memory = min(memory, int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    return f"{min(max(memory // 8, LEAST), MOST) // 2**20}MB"
