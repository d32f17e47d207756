# Every target makes .venv by itself; nothing is needed but python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench bench-gpu docs results-check clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 15

setup: $(VENV)/.installed  ## create .venv with the exact versions of constraints.txt

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup  ## see in two minutes that the order of tokens matters
	$(BIN)/dprm demo

test: setup lint  ## lint, types and every test that needs no accelerator
	$(BIN)/python -m pytest -n 2

lint: setup  ## ruff (lint and format) and mypy (strict on order/)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup  ## the documentation as a site, in site/; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

results-check: setup  ## tables and picture of README and docs are those of the committed cards
	$(BIN)/python -m dprm.report.readme --check
	$(BIN)/python -m benchmarks.table --check

bench: setup  ## speed, as ratios against a peer measured in the same run
	$(BIN)/python -m benchmarks --out results/bench.json

bench-gpu: setup  ## the same on an accelerator, in less than ten minutes
	$(BIN)/python -m benchmarks.gpu --out results/bench-gpu.json

clean:  ## remove .venv and caches
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
