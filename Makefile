# Everything runs in .venv, which is made on the first call; nothing is installed elsewhere.
#   make demo    process pictures with CUDA C++ kernels, check each stage, print a table
#   make test    lint, types, import contracts, tests, documentation examples
#   make lint    the first three of them
#   make bench   measure the CPU target beside its peers (with a GPU also BENCH="raw_launch raw_start
#                array_launch array_start array_kernels")
#   make docs    build the documentation site into site/
#   make soak    all tests, with those that take too long for `make test`, and every text optimized as users' are
# Choose another interpreter with PYTHON=/path/to/python3.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
DOCS_BIN := .venv-docs/bin
# Modules are compiled when they are imported, most of them never.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PACKAGE := pyproject.toml $(wildcard setup.py src/gridstride/_native/*.c src/gridstride/_native/*.h \
	src/gridstride/targets/cpu/runtime/* src/gridstride/targets/cpu/include/gridstride_cpu/*)
BENCH ?= cpu_kernels cpu_start array_kernels
PYTEST_ARGUMENTS ?= -n 2 --dist worksteal
# Tests start hundreds of interpreters, each of which would compile all of our modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint bench docs soak clean
help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.demo
	$(BIN)/gridstride demo $(DEMO)

test: lint
	GRIDSTRIDE_NATIVE=verify $(BIN)/python -m pytest $(PYTEST_ARGUMENTS)

lint: $(VENV)/.test
	$(BIN)/ruff check src tests tools examples benchmarks
	$(BIN)/ruff format --check src tests tools examples benchmarks
	$(BIN)/mypy
	$(BIN)/mypy tests/typing_examples.py
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	for topic in $(BENCH); do $(BIN)/python benchmarks/$$topic.py; done
	$(BIN)/python benchmarks/report.py

docs: .venv-docs/.installed
	$(DOCS_BIN)/zensical build --clean --strict

soak: $(VENV)/.test
	GRIDSTRIDE_NATIVE=verify $(BIN)/python -m pytest -m "" --optimize-all $(PYTEST_ARGUMENTS)

clean:
	rm -rf $(VENV) .venv-docs site build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/.demo: $(VENV)/.made $(PACKAGE)
	@echo "Installing gridstride and what the demo needs into $(VENV) ..."
	$(BIN)/python $(PIP_INSTALL) --editable '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/.made $(PACKAGE)
	@echo "Installing gridstride and what its tests need into $(VENV) ..."
	$(BIN)/python $(PIP_INSTALL) --editable '.[compiler,cuda13,demo,lowp]' --group test
	touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.test
	@echo "Installing what gridstride is compared with into $(VENV) ..."
	$(BIN)/python $(PIP_INSTALL) --group bench
	touch $@

.venv-docs/.installed: pyproject.toml | $(VENV)/.made
	@echo "Installing the documentation builder into .venv-docs ..."
	$(BIN)/python -m venv --clear .venv-docs
	$(DOCS_BIN)/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(DOCS_BIN)/python $(PIP_INSTALL) --group docs
	touch $@

$(VENV)/.made:
	@python=$$(./.ci/find-python $(PYTHON)); echo "Making $(VENV) with $$python ..."; $$python -m venv --clear $(VENV)
	$(BIN)/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	touch $@
