# `make help` lists what can be done. Two targets do everything: `make demo` and `make test`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: venv
venv: .venv/.stamp ## Make .venv: the project and its tools, at pinned versions
	@:

# A moved checkout needs a new one: a virtual environment holds its own path.
ifneq ($(shell cat .venv/.stamp 2>/dev/null),$(realpath .))
.PHONY: .venv/.stamp
endif
.venv/.stamp: pyproject.toml constraints.txt tools/venv.sh tools/python.sh
	@tools/venv.sh
