"""The wheel, alone in a fresh virtual environment, and the lock files that say what it was tested with."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from packaging.requirements import Requirement

from brain import migrate
from tests import postgres

ROOT = Path(__file__).parent.parent
BUILD = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
INSTALL = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]


@dataclass(frozen=True)
class Installed:
    """The project's wheel and an environment that has it, and of this checkout nothing."""

    wheel: Path
    bin: Path

    def run(self, program: str, *arguments: str, environment: Mapping[str, str]) -> str:
        command = [str(self.bin / program), *arguments]
        return subprocess.run(
            command, env=environment, cwd=self.bin, check=True, stdout=subprocess.PIPE, text=True, timeout=120
        ).stdout


@pytest.fixture(scope="session")
def installed(test_run: postgres.Run, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("packaging")
    subprocess.run([sys.executable, "-m", "pip", *BUILD, "--wheel-dir", str(folder), str(ROOT)], check=True)
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=os.name != "nt")
    scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    [libraries] = folder.glob("venv/**/site-packages")
    subprocess.run([sys.executable, "-m", "pip", "--python", str(scripts / "python"), *INSTALL, str(wheel)], check=True)
    # The dependencies come from this environment; the editable install in it is not followed from there.
    (libraries / "dependencies.pth").write_text(str(Path(pytest.__file__).parent.parent), encoding="utf-8")
    return Installed(wheel, scripts)


@pytest.fixture
def clean_environment(empty_dsn: str, tmp_path: Path) -> Mapping[str, str]:
    return {**os.environ, "DATABASE_URL": empty_dsn, "HOME": str(tmp_path)}


def files(folder: str, pattern: str) -> set[str]:
    return {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob(pattern)}


def requirements() -> Iterator[tuple[str, Requirement]]:
    """Each requirement of the project with the lock file that has to satisfy it."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for text in document["build-system"]["requires"]:
        yield "build", Requirement(text)
    for text in document["project"]["dependencies"]:
        yield "runtime", Requirement(text)
        yield "dev", Requirement(text)
    for extra in document["project"]["optional-dependencies"].values():
        yield from (("dev", Requirement(text)) for text in extra)


def pins(lock: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8").splitlines()
    entries = [line.split()[0] for line in lines if "==" in line and not line.startswith((" ", "#"))]
    return {entry.partition("==")[0]: entry.partition("==")[2] for entry in entries}


def test_the_wheel_carries_migrations_queries_and_types_and_no_tests(installed: Installed) -> None:
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    assert {f"brain/_migrations/{name}" for name in files("migrations", "*.py") | files("migrations", "*.sql")} <= names
    assert {f"brain/sql/{name}" for name in files("brain/sql", "*.sql")} <= names
    assert {f"demo/{name}" for name in files("demo", "*.py")} <= names
    assert "brain/py.typed" in names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"brain", "demo"}


def test_the_installed_package_finds_its_own_migrations(
    installed: Installed, clean_environment: Mapping[str, str]
) -> None:
    code = "from brain import migrate; print(migrate.migrations_directory(), migrate.head())"
    directory, head = installed.run("python", "-c", code, environment=clean_environment).split()
    assert Path(directory).is_relative_to(installed.bin.parent)
    assert Path(directory).name == "_migrations"
    assert head == migrate.head()


def test_an_installed_wheel_alone_migrates_a_database(
    installed: Installed, clean_environment: Mapping[str, str]
) -> None:
    installed.run("brain", "migrate", environment=clean_environment)
    with psycopg.connect(clean_environment["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(migrate.head(),)]


def test_every_requirement_is_pinned_to_a_version_that_it_admits() -> None:
    pinned = {lock: pins(lock) for lock in ("build", "runtime", "dev")}
    offences = [
        f"{lock}: {requirement}"
        for lock, requirement in requirements()
        if not requirement.specifier.contains(pinned[lock].get(requirement.name, "0"), prereleases=True)
    ]
    assert offences == []


def test_the_image_installs_the_versions_that_the_tests_ran_with() -> None:
    dev = pins("dev")
    assert {
        name: version for lock in ("build", "runtime") for name, version in pins(lock).items()
    }.items() <= dev.items()
