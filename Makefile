# `make help` lists what can be done. Two targets do everything: `make demo` and `make test`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

export PADDLECLOUD_RUNTIMES ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/paddlecloud/runtimes
ifdef PYTHON
export PYTHON
endif
BIN := .venv/bin
# More arguments for pytest: make test ARGS="-k isolation"
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- the two that do everything ---------------------------------------------------------------

.PHONY: demo
demo: system venv runtime ## Start the platform and train two real jobs on it
	@tools/demo.sh

.PHONY: test
test: ## Run every test; a skip that could be avoided is a failure
	@"$$(tools/python.sh)" tools/suites.py $(ARGS)

# --- while working ----------------------------------------------------------------------------

.PHONY: check
check: venv lint types ## Format, lint, types, architecture and fast tests: under a minute
	@$(BIN)/pytest -q -n 2 -m "not slow and not e2e" --hypothesis-profile=quick --durations=3 --durations-min=1 $(ARGS)

.PHONY: lint
lint: venv ## Check format and style
	@$(BIN)/ruff format --check --quiet --output-format=concise . || { echo "not formatted; run: make format" && exit 1; }
	@$(BIN)/ruff check --quiet --output-format=concise .

.PHONY: types
types: venv ## Check types (strict in core, forms, scheduling, wire)
	@$(BIN)/mypy --no-error-summary

.PHONY: verify
verify: venv ## Compare what is generated from code with what is checked in
	@$(BIN)/python tools/generated.py verify

.PHONY: generate
generate: venv ## Write what is generated from code: deploy/crds, docs/openapi.json, tables
	@$(BIN)/python tools/generated.py write

.PHONY: format
format: venv ## Format the code and fix what can be fixed by rule
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

.PHONY: bench
bench: export PADDLECLOUD_BENCH := 1
bench: venv system cluster-programs ## Run every benchmark; each prints one line of JSON
	@for bench in bench/[!_]*.py; do $(BIN)/python "$$bench" || failed=yes; done; [ -z "$${failed:-}" ]

.PHONY: pictures
pictures: venv $(if $(ARGS),,system runtime) ## Draw the README's pictures from a real run and from bench/results
	@PYTHONPATH=tools $(BIN)/python -m pictures \
		$(or $(ARGS),--runtime "$$(tools/runtime.sh | sed -n 's/^runtime: \(\/.*\)/\1/p' | tail -n 1)")

# --- what the others stand on -----------------------------------------------------------------

.PHONY: venv
venv: .venv/.stamp ## Make .venv: the project and its tools, at pinned versions
	@:

# A moved checkout needs a new one: a virtual environment holds its own path.
ifneq ($(shell cat .venv/.stamp 2>/dev/null),$(realpath .))
.PHONY: .venv/.stamp
endif
.venv/.stamp: pyproject.toml constraints.txt tools/venv.sh tools/python.sh
	@tools/venv.sh

.PHONY: system
system: ## Install what pip cannot (bubblewrap) when root, else say what is missing
	@tools/system.sh

.PHONY: runtime
runtime: venv ## Make the PaddlePaddle runtime in the user's cache
	@tools/runtime.sh

.PHONY: cluster-programs
cluster-programs: ## Build the test cluster's Kubernetes in the user's cache
	@tools/cluster/build.sh
	@tools/cluster/packages.sh

CLUSTER := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/paddlecloud/kube/cluster
NODES ?= $(if $(filter real,$(NODE)),0,10)
CLUSTER_WITH = $(if $(filter real,$(NODE)),--real-node "$$(tools/cluster/packages.sh --where)") \
	$(if $(VOLCANO),--volcano)

.PHONY: cluster
cluster: venv cluster-programs ## Start a Kubernetes cluster (NODES=10 pretended, or NODE=real; VOLCANO=1)
	@config=$$($(BIN)/python tools/cluster/run.py start --state $(CLUSTER) \
		--programs "$$(tools/cluster/build.sh --where)" --nodes $(NODES) $(CLUSTER_WITH)); \
		echo "cluster: export KUBECONFIG=$$config"; \
		echo "         export PATH=$(CLUSTER)/bin:$(CURDIR)/$(BIN):\$$PATH   # kubectl, paddlecloud"

.PHONY: cluster-down
cluster-down: venv ## Stop that cluster and forget what it held
	@$(BIN)/python tools/cluster/run.py stop --state $(CLUSTER)

.PHONY: clean
clean: ## Remove what make made here (the runtime in the user's cache stays)
	@rm -rf .venv .venv.lock build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
