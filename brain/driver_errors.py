"""The one place where the database driver's errors become the project's own."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import psycopg
from psycopg_pool import PoolTimeout

from brain.errors import BrainError, Busy, Unavailable

log = logging.getLogger(__name__)


def is_broken(error: BaseException) -> bool:
    """Whether the connection itself failed, as opposed to the statement."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(("08", "57P"))


_TRANSLATIONS: Sequence[tuple[type[Exception], type[BrainError], str, str]] = (
    (PoolTimeout, Busy, "Every database connection is in use; try again in a moment.", ""),
    (psycopg.errors.QueryCanceled, Busy, "The database took longer than the statement timeout; try again.", ""),
    (psycopg.errors.LockNotAvailable, Busy, "Another write of this brain is taking long; try again in a moment.", ""),
    (psycopg.errors.DeadlockDetected, Busy, "The write collided with others several times; try again.", ""),
    (psycopg.errors.SerializationFailure, Busy, "The write collided with others several times; try again.", ""),
    (
        psycopg.errors.ReadOnlySqlTransaction,
        Unavailable,
        "The database accepts no writes just now, nothing was stored; reads go on.",
        "It is read-only, as after a failover or by default_transaction_read_only.",
    ),
    (psycopg.errors.DiskFull, Unavailable, "The database's disk is full, nothing was stored.", ""),
    (psycopg.errors.InvalidPassword, Unavailable, "The database refused the login.", "Check DATABASE_URL."),
    (
        psycopg.OperationalError,
        Unavailable,
        "The database cannot be reached just now.",
        "Run: brain doctor",
    ),
)


def translated(error: Exception) -> Exception:
    """Return the project's error for a driver error; an unexpected one is returned as it is."""
    if isinstance(error, psycopg.Error):
        log.info("database error %s: %s", error.sqlstate, type(error).__name__)
    for driver, ours, message, hint in _TRANSLATIONS:
        if isinstance(error, driver):
            return ours(message, hint=hint)
    return error
