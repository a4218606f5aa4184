# Two commands matter: `make demo` (see it work) and `make test` (prove it).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINISTACK := .ministack
STAMPS := $(VENV)/stamps
LOCK := uv pip compile --universal --python-version 3.11 --quiet --no-header --upgrade

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo up test check lint types synth bench lock clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMPS)/python: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
	  || { echo "Python 3.11 to 3.14 is needed; choose one with: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/ministack: requirements-ministack.txt
	$(PYTHON) -m venv $(MINISTACK)
	$(MINISTACK)/bin/python -m pip install --quiet --requirement requirements-ministack.txt
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/node: $(STAMPS)/python package.json package-lock.json
	$(BIN)/npm ci --no-fund --no-audit --loglevel=error
	@touch $@

$(STAMPS)/layers: $(STAMPS)/python requirements-layer.txt
	$(BIN)/python -m infra.layers
	@touch $@

setup: $(STAMPS)/python $(STAMPS)/ministack $(STAMPS)/node $(STAMPS)/layers ## Install everything into this folder
