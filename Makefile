# Everything a person types. Each target sets up what it needs; nothing is fetched but packages.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := router controlplane dashboards tests
BUILD_INPUTS := pyproject.toml constraints.txt $(wildcard setup.py router/core/prefix/*.c router/core/prefix/*.h)

SHELL := /bin/sh

.PHONY: help setup setup-dev demo up test test-postgres test-engines lint types contracts migrations check compile uncompile bench fuzz results constraints clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## Set up the virtual environment, with what running needs

setup-dev: $(VENV)/.installed-dev ## Set up the virtual environment, with what testing needs as well

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pointsman needs Python 3.11 or newer ($(PYTHON) is older); try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Could not make a virtual environment. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.installed: $(BIN)/python $(BUILD_INPUTS)
	@echo "Installing Pointsman into $(VENV) ..."
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python $(BUILD_INPUTS)
	@echo "Installing Pointsman and what its tests need into $(VENV) ..."
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $(VENV)/.installed $@

demo: setup ## Run everything with a simulated fleet of 8 engines and live traffic
	@$(BIN)/pointsman up --demo $(ARGS)

up: setup ## Run everything for your own fleet
	@$(BIN)/pointsman up $(ARGS)

test: setup-dev ## Run the whole test suite (ARGS="-n 2": shared by two processes)
	@$(BIN)/python -m pytest $(ARGS)

test-postgres: setup-dev ## Run the control plane's tests on PostgreSQL (DATABASE_URL tells which)
	@DATABASE_URL=$${DATABASE_URL:-postgresql://postgres@127.0.0.1:5432/postgres} $(BIN)/python -m pytest tests/controlplane \
		--ignore tests/controlplane/alerts/test_on_postgresql.py $(ARGS) # which starts some of the others on PostgreSQL

test-engines: setup-dev ## Test against real vLLM servers on the CPU (installs 3.5 GB once; POINTSMAN_VLLM_PYTHON names one)
	@$(BIN)/python -m pytest tests/engines -m engines -s --timeout 1800 $(ARGS)

lint: setup-dev ## Check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup-dev ## Check types
	@$(BIN)/mypy

contracts: setup-dev ## Check who imports whom
	@$(BIN)/lint-imports

migrations: setup-dev ## Check that every model change has its migration
	@$(BIN)/python manage.py makemigrations --check --dry-run

check: lint types contracts migrations ## All checks but the tests

compile: setup-dev ## Compile what every request passes through, in place (needs a C compiler and a minute)
	@POINTSMAN_COMPILE=1 $(PIP) install --constraint constraints.txt --editable .

uncompile: ## Run that as plain Python again
	@find router -name '*.cpython-*.so' -delete
	@rm -f router/compiled.json

bench: setup-dev compile ## Measure the decision, the data plane and the simulator
	@$(BIN)/pointsman bench decision
	@$(BIN)/pointsman bench proxy
	@$(BIN)/pointsman bench sim

fuzz: setup-dev ## Fuzz what reads bytes of clients and engines (SECONDS for each target, ARGS names some)
	@$(PIP) install --constraint constraints.txt --editable '.[fuzz]'
	@$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(ARGS)

results: setup-dev ## Rerun the comparisons behind docs/results.md (about a quarter of an hour)
	@$(BIN)/python -m tests.benchmarks.results $(ARGS)

constraints: ## Pin what is installed now
	@{ echo '# Versions that are tested together. Made by `make constraints`; names no index.'; $(BIN)/python -m pip freeze --exclude-editable; } > constraints.txt

clean: ## Remove the virtual environment, the data and every cache
	find router -name '*.so' -delete
	rm -rf $(VENV) router/compiled.json .data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache artifacts build *.egg-info
	find router controlplane dashboards tests -name __pycache__ -prune -exec rm -rf {} +
