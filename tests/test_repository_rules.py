"""The house rules, as far as a program can check them: who may import what, and what must be explained where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from brain.config import Settings
from scripts import schema

ROOT = Path(__file__).parent.parent
BRAIN = ROOT / "brain"

FOUNDATION = (
    {"accounts", "cluster", "config", "database", "driver_errors", "embedded", "embedders"} |
    {"migrate", "private_files", "repository", "server_memory", "sql", "work"}
)  # fmt: skip
COMPOSITION = {"runtime"}
PURE = {path.stem for path in BRAIN.glob("[!_]*.py")} - FOUNDATION - COMPOSITION
"""Every other module of the package itself, so that a new one is pure until this file says otherwise."""

TIERS = {"": 0} | dict.fromkeys(PURE, 0) | dict.fromkeys(FOUNDATION, 1) | {"services": 2}
ADAPTERS = 3
"""The tier of everything else: tools, web, cli and what composes them."""

DRIVER = {"psycopg", "psycopg_pool", "pgvector", "sqlalchemy", "alembic"}
HOLDERS = {
    "driver": (DRIVER, {"database", "driver_errors", "migrate", "cluster", "embedded", "repository", "work"}),
    "mcp": ({"mcp", "mcp_types"}, {"tools", "web", "cli"}),
    "starlette": ({"starlette", "uvicorn", "sse_starlette"}, {"web", "cli"}),
    "terminal": ({"typer", "click", "rich"}, {"cli"}),
    "HTTP client": ({"httpx2", "httpx", "requests", "urllib3"}, {"embedders", "cli"}),
    "process": ({"psutil"}, {"cluster", "embedded", "server_memory"}),
}
FOREIGN_RUNTIMES = {"embedders"}
"""Call code that raises whatever it likes, so they may translate `Exception` as well."""

NAMESPACE = re.compile(r"%\(namespace\)s|\{\w+\}")
"""A query's parameter, or the place where the repository puts a part that has it."""

WITHOUT_NAMESPACE = {"server"}
"""Queries about the server, not about a brain."""

LINES = {"brain": 420, "demo": 420, "benchmarks": 420, "scripts": 420, "tests": 600}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|var/tmp|Users|home/(?!brain\b|you\b))/|[A-Z]:\\Users\\")


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name_of(path: Path) -> str:
    """`brain/services/pins.py` -> `services`, `brain/times.py` -> `times`, `brain/__init__.py` -> ``."""
    first = path.relative_to(BRAIN).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Dotted names of what a module imports, anywhere in it; `from brain import times` counts as `brain.times`."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            assert node.module is not None
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "brain" else {node.module}
            )
    return frozenset(found)


def top_level(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def own(path: Path) -> set[str]:
    """First-level names below `brain` that a module imports."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("brain.")}


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def named_blocks() -> Iterator[tuple[Path, str, str]]:
    for path in sorted((BRAIN / "sql").glob("*.sql")):
        for block in path.read_text(encoding="utf-8").split("-- name:")[1:]:
            name, _, body = block.partition("\n")
            yield path, name.strip(), body.strip()


def test_nothing_imports_a_higher_tier() -> None:
    offences = [
        f"{relative(path)} imports brain.{target}"
        for path in sources(BRAIN)
        for target in sorted(own(path))
        if TIERS.get(target, ADAPTERS) > TIERS.get(name_of(path), ADAPTERS)
    ]
    assert offences == []


def test_pure_modules_import_only_the_standard_library_and_each_other() -> None:
    allowed = sys.stdlib_module_names | {"brain"}
    allowed_besides = {"text": {"Stemmer"}}
    offences = {
        relative(path): outside
        for path in (BRAIN / f"{name}.py" for name in PURE)
        if (outside := top_level(path) - allowed - allowed_besides.get(path.stem, set()))
    }
    assert offences == {}


@pytest.mark.parametrize("packages", HOLDERS)
def test_a_package_is_imported_only_where_it_belongs(packages: str) -> None:
    libraries, holders = HOLDERS[packages]
    offences = [
        relative(path) for path in sources(BRAIN) if name_of(path) not in holders and top_level(path) & libraries
    ]
    assert offences == []


def test_pydantic_stays_where_input_enters() -> None:
    inside = {"", *PURE, "database", "work", "embedded", "cluster", "migrate", "repository", "services"}
    offences = [relative(path) for path in sources(BRAIN) if name_of(path) in inside and "pydantic" in top_level(path)]
    assert offences == []


def test_only_config_reads_the_environment() -> None:
    readers = {
        path.relative_to(BRAIN).as_posix()
        for path in sources(BRAIN)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}
    }
    readers |= {path.name for path in sources(BRAIN) if "pydantic_settings" in top_level(path)}
    assert readers == {"config.py"}


def test_a_broad_except_is_only_in_the_outermost_adapters() -> None:
    offences = [
        f"{relative(path)}:{node.lineno}"
        for path in sources(BRAIN)
        if TIERS.get(name_of(path), ADAPTERS) < ADAPTERS and name_of(path) not in FOREIGN_RUNTIMES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name) and node.type.id == "Exception"
    ]
    assert offences == []


@pytest.mark.parametrize("folder", LINES)
def test_no_file_grows_beyond_reading_in_one_go(folder: str) -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources(ROOT / folder)}
    assert {name: length for name, length in lengths.items() if length > LINES[folder]} == {}


def test_every_module_says_in_one_line_what_it_is() -> None:
    offences = [
        relative(path)
        for folder in ("brain", "demo", "benchmarks", "scripts", "tests")
        for path in sources(ROOT / folder)
        if path.name != "__init__.py" or path.read_text(encoding="utf-8").strip()
        if not (ast.get_docstring(tree(path)) or "").splitlines()[:1]
    ]
    assert offences == []


def test_the_package_exports_nothing_but_its_version() -> None:
    code = "import brain; print(brain.__version__, [name for name in vars(brain) if not name.startswith('_')])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert printed == f"{project['version']} []\n"


def variables() -> dict[str, str]:
    """Each setting's variable with its default as one writes it in the environment."""
    given = {}
    for name, field in Settings.model_fields.items():
        variable = str(field.validation_alias or f"BRAIN_{name.upper()}")
        default = field.default
        given[variable] = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return given


def test_env_example_has_every_setting_with_its_default() -> None:
    lines = re.findall(r"^# ([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    compose_only = {"POSTGRES_PASSWORD": ""}
    assert dict(lines) == variables() | compose_only
    assert len(lines) == len(dict(lines))


def test_the_readme_has_a_table_row_for_every_setting() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \|([^|]*)\|[^|]{10,}\|$", readme, re.MULTILINE)
    documented = {name: default.strip(" `") for name, default in rows if name in variables()}
    assert documented.keys() == variables().keys()
    # Where a default is empty, the table may say in words what that means.
    assert {name: documented[name] for name, default in variables().items() if default} == {
        name: default for name, default in variables().items() if default
    }


def test_every_named_query_says_its_purpose_first() -> None:
    offences = [f"{relative(path)}: {name}" for path, name, body in named_blocks() if not re.match(r"-- \S.{9,}", body)]
    assert offences == []


def test_names_of_queries_are_unique_in_their_file() -> None:
    names = [(path, name) for path, name, _ in named_blocks()]
    assert len(names) == len(set(names))


def test_every_named_query_is_used() -> None:
    strings = {
        node.value
        for path in sources(BRAIN)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [f"{relative(path)}: {name}" for path, name, _ in named_blocks() if name not in strings] == []


def test_every_named_query_names_its_namespace() -> None:
    statement = re.compile(r"(?:--.*\n)*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")
    without = {name for _, name, body in named_blocks() if statement.match(body) and not NAMESPACE.search(body)}
    assert without == WITHOUT_NAMESPACE


def test_no_file_names_a_place_of_one_machine() -> None:
    offences = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        offences += [f"{relative(path)}: {match[0]}" for match in MACHINE_PATH.finditer(text) if path != Path(__file__)]
    assert offences == []


@pytest.mark.parametrize("lock", ["build", "dev", "runtime"])
def test_a_lock_file_pins_hashes_and_names_no_index(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\w)", text)
    assert all("--hash=sha256:" in entry for entry in entries if "==" in entry)
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|file:", text)


def test_make_without_a_target_lists_what_a_newcomer_types_first() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    targets = re.findall(r"^  make ([a-z-]+) +\S", shown, re.MULTILINE)
    assert targets[:3] == ["help", "setup", "demo"]
    assert {"test", "test-long", "test-docker", "check", "up", "down", "migrate", "seed", "serve"} <= set(targets)


def test_the_documented_schema_is_what_the_migrations_make(module_dsn: str) -> None:
    assert schema.DOCUMENT.read_text(encoding="utf-8") == schema.document(module_dsn)
