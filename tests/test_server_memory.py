"""How much memory the embedded server takes for its pages, on machines and in containers of any size."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from brain import server_memory


@pytest.mark.parametrize(
    ("machine", "container", "expected"),
    [
        (16 * 2**30, "max", "2048MB"),
        (8 * 2**30, "max", "1024MB"),
        (64 * 2**30, "max", "2048MB"),
        (64 * 2**30, str(4 * 2**30), "512MB"),
        (512 * 2**20, "max", "128MB"),
        (4 * 2**30, None, "512MB"),
    ],
)
def test_pages_take_an_eighth_of_the_memory_within_bounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: int, container: str | None, expected: str
) -> None:
    limit = tmp_path / "memory.max"
    if container is not None:
        limit.write_text(container + "\n", encoding="ascii")
    monkeypatch.setattr(server_memory, "CONTAINER_LIMIT", limit)
    monkeypatch.setattr(server_memory.psutil, "virtual_memory", lambda: SimpleNamespace(total=machine))
    assert server_memory.shared_buffers() == expected
