"""Settings come from the environment and the user's own file, never from the folder that a process starts in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brain import config
from brain.errors import ConfigurationError

PRINT = "from brain import config; s = config.load(); print(s.namespace, s.database_url is None)"


def loaded(folder: Path, **environment: str) -> str:
    bare = {
        name: value for name, value in os.environ.items() if not name.startswith("BRAIN_") and name != "DATABASE_URL"
    }
    done = subprocess.run(
        [sys.executable, "-c", PRINT], cwd=folder, env=bare | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_dotenv_file_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=postgresql://elsewhere/x\nBRAIN_NAMESPACE=planted\n")
    assert loaded(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "none")) == "default True"


def test_the_settings_file_of_the_user_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / "layered-memory" / "settings.env"
    file.parent.mkdir()
    file.write_text("DATABASE_URL=postgresql://mine/x\nBRAIN_NAMESPACE=mine\n")
    assert loaded(tmp_path, XDG_CONFIG_HOME=str(tmp_path)) == "mine False"
    assert loaded(tmp_path, XDG_CONFIG_HOME=str(tmp_path), BRAIN_NAMESPACE="other", DATABASE_URL="") == "other True"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BRAIN_POOL_SIZE", "many"),
        ("BRAIN_TIME_ZONE", "Mars/Olympus"),
        ("BRAIN_WRITE_SCOPE", "some"),
        ("BRAIN_HTTP_PORT", "0"),
    ],
)
def test_a_bad_variable_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as refused:
        config.load()
    assert name in refused.value.message
    assert "\n" not in refused.value.message
