# The first line of `make help` is the first thing to type: make demo.

PYTHON ?=
JOBS ?= logical
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
COMPOSE = $$(docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)
UV = build/lock/bin/uv
COMPILE = $(UV) pip compile --universal --python-version 3.11 --generate-hashes --quiet \
	--custom-compile-command "make lock"

# glibc versions of Linux wheels that the image takes.
GLIBC := _2_34 _2_31 _2_28 _2_27 _2_26 _2_24 _2_17 2014 _2_12 2010 _2_5 1
MACHINE = $$(uname -m | sed s/arm64/aarch64/)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-long test-docker check format up down migrate seed serve schema lock wheels clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(DEVELOPMENT) ## Create .venv and install the pinned packages and this project into it

demo: $(RUNTIME) ## See an assistant's memory at work, on an embedded Postgres
	@$(BIN)/brain demo

test: setup ## Run the tests against a real Postgres, on every core (JOBS=1: one after the other)
	@$(BIN)/pytest -n $(JOBS)

test-long: setup ## Run the long property and soak tests
	@$(BIN)/pytest -m long

test-docker: setup wheels ## Run the storage tests in a container, and the whole of docker-compose.yml
	@TEST_DATABASE=docker $(BIN)/pytest -n $(JOBS) --dist loadgroup -m "docker or (database and not long)"

check: setup ## Lint, check the format and check the types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

up: .env ## Start Postgres and the service in containers
	@$(COMPOSE) up --build --detach

down: ## Stop the containers; the data is kept
	@$(COMPOSE) down

migrate: $(RUNTIME) ## Bring the database to this version's schema
	@$(BIN)/brain migrate

seed: $(RUNTIME) ## Fill the demo's brain and leave out the walk-through
	@$(BIN)/brain demo --seed-only

serve: $(RUNTIME) ## Serve MCP over HTTP (BRAIN_HTTP_TOKEN is the token); clients start `brain serve` themselves
	@$(BIN)/brain serve --http

schema: setup ## Write docs/schema.sql from the migrations; a test verifies it
	@$(BIN)/python scripts/schema.py

lock: ## Resolve pyproject.toml into requirements/*.lock, newest versions first
	@rm -rf build/lock && $(find_python) && "$$python" -m venv build/lock && build/lock/bin/pip install --quiet uv
	@$(COMPILE) --upgrade --all-extras --output-file requirements/dev.lock pyproject.toml
	@$(COMPILE) --constraints requirements/dev.lock --output-file requirements/runtime.lock pyproject.toml
	@printf 'hatchling\neditables\n' | $(COMPILE) --constraints requirements/dev.lock --output-file requirements/build.lock -
	@rm -rf build/lock

wheels: setup ## Download what the image installs, for a build without a network
	@rm -rf build/wheels && mkdir -p build/wheels
	@$(PIP) download --dest build/wheels --only-binary :all: --implementation cp --python-version 3.11 \
		$(foreach glibc,$(GLIBC),--platform manylinux$(glibc)_$(MACHINE)) \
		--requirement requirements/build.lock --requirement requirements/runtime.lock

clean: ## Remove everything that can be made again, except the brain's data
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find brain demo tests benchmarks scripts migrations -name __pycache__ -prune -exec rm -rf {} +

# The first Python that is new enough and can make virtual environments, unless PYTHON names one.
find_python = for python in "$(PYTHON)" python3 python3.11 python3.12 python3.13 python3.14 python; do \
	[ -n "$$python" ] && "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	python=; done; \
	[ -n "$$python" ] || { echo "No Python 3.11 or newer with venv was found; name one with: make PYTHON=/path/to/python" >&2; exit 1; }

$(RUNTIME): pyproject.toml requirements/build.lock requirements/runtime.lock
	@echo "Installing into $(VENV)"
	@[ -x $(BIN)/python ] || { $(find_python); "$$python" -m venv $(VENV); }
	@$(PIP) install --require-hashes --requirement requirements/build.lock --requirement requirements/runtime.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(RUNTIME)

$(DEVELOPMENT): $(RUNTIME) requirements/dev.lock
	@echo "Installing what the tests need"
	@$(PIP) install --require-hashes --requirement requirements/dev.lock
	@touch $(DEVELOPMENT)

.env:
	@umask 077; random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }; \
	{ echo "# See .env.example for every setting."; \
	  echo "BRAIN_HTTP_TOKEN=$$(random)"; echo "POSTGRES_PASSWORD=$$(random)"; } >.env
	@echo "Wrote .env with a new token and password"
