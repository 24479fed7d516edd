"""The operating-system account that runs the embedded Postgres when this process is root.

Postgres refuses to run as root. A process of an ordinary user runs it as itself; a process of root runs it as the owner
of the data directory or, when that is root as well, as a system account made for nothing else. That account gets the
right to pass through the directories on the way to the data and to the programs, and no right to list or read them.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from brain.errors import ConfigurationError

SYSTEM_ACCOUNT = "layered-memory"

_log = logging.getLogger(__name__)

_ACL = "system.posix_acl_access"
_ACL_VERSION = 2
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY_IN_PARTICULAR = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Account:
    """A user and a group of the operating system, by number."""

    uid: int
    gid: int

    def own(self, path: Path | int) -> None:
        """Give a file (a path or an open descriptor) to this account; a link is not followed."""
        if sys.platform != "win32":
            if isinstance(path, int):
                os.fchown(path, self.uid, self.gid)
            else:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def own_tree(self, root: Path) -> None:
        """Give a directory and all below it to this account."""
        self.own(root)
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                self.own(Path(folder, name))


def is_root() -> bool:
    """Whether this process may become any other account."""
    return sys.platform != "win32" and os.geteuid() == 0


def this() -> Account:
    """The account of this process."""
    return Account(0, 0) if sys.platform == "win32" else Account(os.geteuid(), os.getegid())


def owner(path: Path) -> Account:
    """The account that owns a file."""
    status = path.stat()
    return Account(status.st_uid, status.st_gid)


def system_account() -> Account:
    """The account made for the embedded Postgres of root, created when missing, else ConfigurationError."""
    deadline = time.monotonic() + 20
    while (account := _find(SYSTEM_ACCOUNT)) is None:
        # Another process may be creating it, or hold the lock of the user database, at this moment.
        if not _create(SYSTEM_ACCOUNT) and time.monotonic() > deadline:
            raise ConfigurationError(
                f"Postgres does not run as root, and the system account {SYSTEM_ACCOUNT} for it could not be created.",
                hint=f"Run as an ordinary user, or create it with: useradd --system {SYSTEM_ACCOUNT}",
            )
    return account


def _find(name: str) -> Account | None:
    if sys.platform == "win32":
        return None
    import pwd

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid)


def _create(name: str) -> bool:
    shell = "/usr/sbin/nologin"
    shadow = ["useradd", "--system", "--user-group", "--no-create-home", "-d", "/nonexistent", "-s", shell, name]
    busybox = ["adduser", "-S", "-D", "-H", "-h", "/nonexistent", "-s", shell, name]
    for command in (shadow, busybox):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return True
        _log.debug("%s ended with status %d: %s", command[0], done.returncode, done.stderr.decode(errors="replace"))
    time.sleep(0.1)
    return False


def let_pass(account: Account, path: Path) -> None:
    """Let the account pass through a directory and its parents, where it cannot yet."""
    for folder in (path, *path.parents):
        status = folder.stat()
        if not _may_enter(account, status):
            _grant_entry(account, folder, status)


def let_run(account: Account, programs: Path) -> None:
    """Let the account run what a directory holds, also when it was installed under a strict umask."""
    let_pass(account, programs)
    for folder, _, files in os.walk(programs.parent):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = mode | (mode & 0o500) >> 6
            if mode != wanted:
                path.chmod(wanted)


def _may_enter(account: Account, status: os.stat_result) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _grant_entry(account: Account, folder: Path, status: os.stat_result) -> None:
    if status.st_uid == account.uid:
        folder.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXUSR)
        return
    try:
        _extend_acl(account, folder, status)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise
        _log.warning("%s takes no access list; every user may now pass through it (not list it)", folder)
        folder.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def _extend_acl(account: Account, folder: Path, status: os.stat_result) -> None:
    """Add `user:account:--x` to the POSIX access list (layout: linux/posix_acl_xattr.h)."""
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, "no POSIX access lists here")
    entries = _read_acl(folder, status.st_mode)
    if entries.get((_USER, account.uid), 0) & 1 and entries.get((_MASK, _NOBODY_IN_PARTICULAR), 0) & 1:
        return
    entries.setdefault((_MASK, _NOBODY_IN_PARTICULAR), entries[_GROUP_OBJ, _NOBODY_IN_PARTICULAR])
    for key in ((_USER, account.uid), (_MASK, _NOBODY_IN_PARTICULAR)):
        entries[key] = entries.get(key, 0) | 1
    packed = b"".join(struct.pack("<HHI", tag, rights, who) for (tag, who), rights in sorted(entries.items()))
    os.setxattr(folder, _ACL, struct.pack("<I", _ACL_VERSION) + packed)


def _read_acl(folder: Path, mode: int) -> dict[tuple[int, int], int]:
    if sys.platform != "linux":
        return {}
    try:
        raw = os.getxattr(folder, _ACL)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        shifts = ((_USER_OBJ, 6), (_GROUP_OBJ, 3), (_OTHER, 0))
        return {(tag, _NOBODY_IN_PARTICULAR): mode >> shift & 7 for tag, shift in shifts}
    return {(tag, who): rights for tag, rights, who in struct.iter_unpack("<HHI", raw[4:])}
