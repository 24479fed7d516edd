"""One brain as a process sees it: its database, its model and its caller; every surface works through it."""

from __future__ import annotations

import asyncio
import re
import secrets
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from brain import embedders
from brain.caller import Caller, Origin
from brain.config import Settings, environment_without
from brain.database import Database
from brain.embedders import Embedder
from brain.names import Scope, parse_scope, slug
from brain.work import Work

T = TypeVar("T")
"""What a job returns."""


@dataclass(frozen=True, slots=True)
class Brain:
    """What a surface needs to serve one caller."""

    settings: Settings
    database: Database
    embedder: Embedder
    caller: Caller

    async def read(self, job: Callable[[Work], Awaitable[T]], *, as_of: datetime | str | None = None) -> T:
        """Run a job in a read-only transaction as of an instant."""
        return await self.database.read(self.caller, job, as_of=as_of)

    async def write(self, job: Callable[[Work], Awaitable[T]]) -> T:
        """Run a job in a writing transaction and return after its commit."""
        return await self.database.write(self.caller, job)

    def called_by(self, client: str) -> Brain:
        """The same brain for a client that said its name, unless the launch already fixed one."""
        return (
            self
            if self.caller.client or not client
            else replace(self, caller=replace(self.caller, client=client[:100]))
        )

    async def close(self) -> None:
        """Let go of the database and the model."""
        await embedders.close(self.embedder)
        await self.database.close()


def open_brain(settings: Settings, *, origin: Origin, client: str = "", project: Scope | None = None) -> Brain:
    """Return a brain that connects at its first use."""
    caller = Caller(
        namespace=settings.namespace,
        client=settings.client or client,
        session=settings.session or secrets.token_hex(6),
        model=settings.model,
        origin=origin,
        project=project,
        write_scope=settings.write_scope,
        read_only=settings.read_only,
    )
    return Brain(settings, Database(settings), embedders.from_settings(settings), caller)


def bound_project(settings: Settings, folder: Path) -> Scope:
    """Return the project that a process started in a folder is bound to.

    A name in the settings wins; otherwise the Git repository (linked worktrees share it, submodules do not), named
    by its folder or, with project_from remote, by its normalised origin address; outside Git, the folder.
    """
    if named := named_project(settings):
        return named
    if settings.project_from == "remote":
        origin = _git(folder, "config", "--get", "remote.origin.url")
        if origin:
            return Scope("project", slug(normalised_remote(origin), field="project"))
    return Scope("project", slug(_repository(folder).name or "root", field="project"))


def named_project(settings: Settings) -> Scope | None:
    """Return the project that the settings name, if they name one."""
    name = settings.project.strip()
    if not name:
        return None
    return (
        parse_scope(name, field="project")
        if name.startswith("project:")
        else Scope("project", slug(name, field="project"))
    )


def normalised_remote(address: str) -> str:
    """Return host and path of a Git remote, the same for its SSH and HTTPS forms, without user, port or suffix."""
    plain = re.sub(r"^[a-z][a-z0-9+.-]*://", "", address.strip(), flags=re.IGNORECASE)
    plain = re.sub(r"^[^@/]*@", "", plain)
    plain = re.sub(r"^([^/:]+):(?:\d+/)?", r"\1/", plain)
    return re.sub(r"(?:\.git)?/*$", "", plain)


def _repository(folder: Path) -> Path:
    """Return the checkout that a folder belongs to: for a linked worktree the main one, else the folder itself."""
    top, common = _git(folder, "rev-parse", "--show-toplevel"), _git(folder, "rev-parse", "--git-common-dir")
    if not top:
        return folder.resolve()
    shared = (folder / common).resolve()
    return shared.parent if shared.name == ".git" else Path(top)


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints, or nothing where there is no git or no repository."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed program and arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - found on the user's own PATH
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment_without("GIT_"),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def run(job: Callable[[], Awaitable[T]]) -> T:
    """Run an asynchronous job to its end, on an event loop that the database driver can use on every platform."""

    async def main() -> T:
        return await job()

    with asyncio.Runner(loop_factory=_loop) as runner:
        return runner.run(main())


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop()
