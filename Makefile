# Two commands do everything on a fresh machine with Python >= 3.11: `make demo` and `make test`.
# `make` alone explains each target. Works with GNU make 3.81 and any POSIX shell.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

BIN := .venv/bin
STAMP := .venv/.stamp
PYTEST := $(BIN)/python -m pytest
# Processes for the tests, and what one process keeps to itself: a file, for its databases.
PARALLEL := -n 2 --dist loadfile

.PHONY: help
help: ## explain each target
	@echo 'usage: make TARGET'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(STAMP) ## make the environment in .venv (the other targets do it by themselves)

$(STAMP): pyproject.toml scripts/setup
	@scripts/setup .venv

.PHONY: demo
demo: $(STAMP) ## run the main job on the embedded store, with a kill in the middle, and check the outcome
	@$(BIN)/luciole demo

.PHONY: test
test: check test-all test-pythons ## everything: check, all tests on all stores, oldest and newest Python

.PHONY: quick
quick: lint ## before each commit: check and the fast tests
	@echo '== fast tests'
	@$(PYTEST) -q $(PARALLEL) -m 'not slow and not postgres'

.PHONY: check
check: lint ## format, lint rules, types, import layers, house rules
	@echo '== house rules'
	@$(PYTEST) -q tests/test_house.py

.PHONY: lint
lint: $(STAMP)
	@echo '== format'
	@$(BIN)/ruff format --check --quiet . || { echo 'run: make fix'; exit 1; }
	@echo '== lint rules'
	@$(BIN)/ruff check --quiet .
	@echo '== types'
	@$(BIN)/mypy
	@echo '== import layers'
	@$(BIN)/lint-imports >.lint-imports.log 2>&1 || { cat .lint-imports.log; exit 1; }

.PHONY: test-all
test-all: $(STAMP)
	@echo '== all tests'
	@$(PYTEST) $(PARALLEL)

.PHONY: test-pythons
test-pythons: $(STAMP) ## the fast tests on the oldest and the newest Python present
	@echo '== oldest and newest Python'
	@$(BIN)/python scripts/test_pythons.py

.PHONY: fix
fix: $(STAMP) ## format the code and apply the lint rules' safe repairs
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .

.PHONY: bench
bench: $(STAMP) ## a short burst on this machine, with correctness inside the result
	@$(BIN)/luciole bench run burst --size smoke

.PHONY: selftest
selftest: $(STAMP) ## plant faults in the bench and see each one caught, in under 6 minutes
	@$(BIN)/luciole bench selftest

.PHONY: clean
clean: ## remove environments, caches and build results
	@rm -rf .venv .venv-* build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .lint-imports.log
