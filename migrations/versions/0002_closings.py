"""What left the sight of the present, counted as it is written, so that a search need not look for it."""

from brain.migrate import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql(__file__, "up")


def downgrade() -> None:
    run_sql(__file__, "down")
