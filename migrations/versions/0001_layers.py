"""The seven layers, their clock, their search tables and who may touch them."""

from brain.migrate import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql(__file__, "up")


def downgrade() -> None:
    run_sql(__file__, "down")
