# make test, make demo, make demo-small: each makes what it needs; nothing is installed outside this folder.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: help test test-all test-latest lint types unit coverage spelling site demo demo-small docs wheel bench bench-cost bench-fleet property random adversarial clean

PYTHON ?= python3
JOBS ?= 2
COVERAGE_FLOOR ?= 72
VENV := .venv
BIN := $(VENV)/bin
# Neighbours share the fixtures of their file, so each worker gets a half in order, and takes of the other's when it is done.
PYTEST = $(BIN)/pytest -n $(JOBS) --dist worksteal
# What is imported is compiled then: half a minute less than all that is installed.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Tests start hundreds of Python processes, and without bytecode each compiles what it imports: a second for `graphmend check` of a few files.
export PYTHONDONTWRITEBYTECODE :=
# Two workers with as many torch threads as cores each would only fight.
export OMP_NUM_THREADS ?= 1

help:
	@echo "make test        lint, types and tests, in an environment of its own (.venv)"
	@echo "make test-all    the same with what takes longer: slow tests, every scenario of every example, more generated modules"
	@echo "make test-latest what the newest torch and transformers decide, in an environment of its own (.venv-latest): gigabytes"
	@echo "make demo        migrate transformers and compile t5, bart float16 and phi3 longrope before and after"
	@echo "make demo-small  migrate the repository in examples/: seconds"
	@echo "make docs        write docs/rules/ from the rules, and the schemas of report.json and trace.json"
	@echo "make site        the documentation as web pages, in site/: searchable, without the network"
	@echo "make coverage    tests, with the lines that they run; fails below a floor"
	@echo "make spelling    typos in code and documents"
	@echo "make wheel       a wheel with the analysis compiled, in dist/: needs a C compiler and minutes"
	@echo "make bench       speed against peers"
	@echo "make bench-cost  what fixes cost compiled code: hours; COST='--rules GM101 --types t5' for a part"
	@echo "make bench-fleet what many repositories take"
	@echo "make property    5000 generated modules, before against after"
	@echo "make random      1000 random programs, before against after, compiled"
	@echo "make adversarial 2000 hostile modules, before against after, eager and compiled"

# torch goes first and alone: resolved together with the rest it may bring gigabytes of another build.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e '.[eval,dev]'
	touch $@

test: lint types unit

# What `make test` leaves out, as it has to end in twelve minutes on two cores: tests marked slow, each with a quicker one of its kind
# beside it, and most of the combinations of gradients, training and inputs that examples are called with.
test-all: export GRAPHMEND_TEST_ALL := 1
test-all: lint types
	$(PYTEST)

# Versions that users have and the other tests do not; the index gives torch with CUDA, which takes minutes. All tests of
# the rules, counting, tracing and a sample of models run there: minutes to install, four to test.
LATEST := .venv-latest
LATEST_TORCH ?= 2.15.0
LATEST_TRANSFORMERS ?= 5.23.0
LATEST_TESTS ?= tests/rules tests/test_graph_break_table.py tests/trace tests/evaluation/test_counting.py tests/evaluation/test_tracing.py

$(LATEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(LATEST)
	$(LATEST)/bin/pip install --quiet --disable-pip-version-check torch==$(LATEST_TORCH) transformers==$(LATEST_TRANSFORMERS)
	$(LATEST)/bin/pip install --quiet --disable-pip-version-check -e '.[eval]' pytest pytest-xdist hypothesis jsonschema PyYAML einops opt_einsum
	touch $@

test-latest: $(LATEST)/.installed
	$(LATEST)/bin/python scripts/document_graph_breaks.py --compare "$$($(LATEST)/bin/python -c 'import torch; print(torch.__path__[0])')"
	$(LATEST)/bin/pytest -n $(JOBS) --dist worksteal -m "not slow" $(LATEST_TESTS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/document_rules.py --check
	$(BIN)/python scripts/document_graph_breaks.py --check

types: $(VENV)/.installed
	MYPY_NUM_WORKERS=$(JOBS) $(BIN)/mypy

unit: $(VENV)/.installed
	$(PYTEST) -m "not slow"

# The floor is what a part of the tests was measured to reach (73% of lines and branches: generated and hostile modules, and the tests
# of core, project, engine, rewriting, reporting and migrate). What runs in child processes is not counted. Raise it, do not lower it.
coverage: $(VENV)/.installed
	$(PYTEST) --cov --cov-report=xml --cov-report=term --cov-fail-under=$(COVERAGE_FLOOR)

spelling: $(VENV)/.installed
	$(BIN)/typos

site: $(VENV)/.installed
	$(BIN)/python scripts/build_site.py

demo: $(VENV)/.installed
	$(BIN)/python -m graphmend_evaluation.paper --rows t5,bart-float16,phi3-longrope

demo-small: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

docs: $(VENV)/.installed
	$(BIN)/python scripts/document_rules.py
	$(BIN)/python -m graphmend_evaluation.reporting.schema
	$(BIN)/python scripts/document_graph_breaks.py

# Built from an export of the last commit: compiled files that stand beside the source would hide it from Python.
wheel: $(VENV)/.installed
	rm -rf dist
	mkdir -p dist/source
	git archive HEAD | tar -x -C dist/source
	HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/pip wheel --quiet --no-deps --wheel-dir dist dist/source
	rm -rf dist/source

bench: wheel
	$(BIN)/python evaluation/benchmarks/speed.py --wheel dist/*.whl

# What is measured already stays in .cost: an interrupted run goes on.
bench-cost: $(VENV)/.installed
	$(BIN)/python evaluation/benchmarks/cost.py $(COST)

# CLONES is a folder of clones to measure beside the generated repositories.
bench-fleet: $(VENV)/.installed
	$(BIN)/python evaluation/benchmarks/fleet.py $(if $(CLONES),--real $(CLONES))

property: $(VENV)/.installed
	$(BIN)/python evaluation/benchmarks/property_run.py --cases 5000 --seed 0 --jobs $(JOBS)

random: $(VENV)/.installed
	$(BIN)/python evaluation/benchmarks/random_programs.py --seeds 0 1000

adversarial: $(VENV)/.installed
	$(BIN)/python evaluation/benchmarks/adversarial.py --jobs $(JOBS)

clean:
	rm -rf $(VENV) $(LATEST) dist site .demo .mypy_cache .pytest_cache .ruff_cache
