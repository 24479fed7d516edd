"""Layered memory for LLM assistants: seven versioned layers on Postgres and pgvector, served over MCP."""

__version__ = "0.1.0"
