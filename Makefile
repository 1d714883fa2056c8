# Targets for people. The variables below can be given on the command line: make bench PROFILE=jemalloc ARGS="--budget 60s"
PYTHON  ?= python3
PROFILE ?= intel-omp
ENGINE  ?= local
ARGS    ?=
VENV    := .venv
RUNNER  := $(VENV)/bin/runner

.DEFAULT_GOAL := help
.PHONY: help setup bench profiles test lint lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install the locked dependencies into .venv
	@PYTHON="$(PYTHON)" images/setup $(VENV)

bench: setup  ## measure PROFILE (default intel-omp) against the baseline and report
	@$(RUNNER) bench $(PROFILE) --engine $(ENGINE) $(ARGS)

profiles: setup  ## list the profiles
	@$(RUNNER) profiles

dev: setup
	@PYTHON="$(PYTHON)" images/setup $(VENV) --dev

test: dev  ## run all tests (a missing engine skips its tests and says so)
	@$(VENV)/bin/pytest

lint: dev  ## check style, types and shell scripts
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy

lock:  ## renew the lock files
	@images/lock

clean:  ## remove the virtual environment and what was built (results stay)
	@rm -rf $(VENV) build
