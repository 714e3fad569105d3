# Everything starts here, from a bare checkout with Python ≥ 3.11 and make:
#   make reproduce   the paper's claims, each with its verdict  → out/reproduce/index.html
#   make test        the tests
# Both make .venv/ first if it is not there or if pyproject.toml or constraints.txt has changed since.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
PEERS ?= $(wildcard .venv-peers/bin/python)
JOBS ?= 2
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup test lint types reproduce bench bench-planning bench-tabular bench-deep bench-atari atari-smoke peers peers-deep faults picture clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: $(READY)  ## make .venv/ with everything, pinned by constraints.txt
	@echo "setup: $(VENV) is ready"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "setup: dynaboltz needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	    echo "  name another one: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@echo "setup: making $(VENV) and installing the pinned packages (one or two minutes, once)"
	@$(PYTHON) -m venv $(VENV)
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[dev]' 2> $(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $(READY)

test: $(READY)  ## run the tests and the doctests
	@echo "test: running the tests on $(JOBS) processes"
	@$(BIN)/python -m pytest -q -n $(JOBS) && echo "test: passed"

lint: $(READY)  ## ruff: rules and format
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && echo "lint: passed"

types: $(READY)  ## mypy, strict, over src and tests
	@$(BIN)/mypy && echo "types: passed"

reproduce: $(READY)  ## the paper's claims and their verdicts → out/reproduce/index.html
	@$(BIN)/dynaboltz reproduce --out $(OUT)/reproduce

bench: $(READY)  ## operator throughput beside this machine's limits
	@$(BIN)/python benchmarks/operators.py

bench-planning: $(READY)  ## sweeps beside the memory bandwidth, and solvers beside their peers, if make peers made them
	@$(BIN)/python benchmarks/planning.py $(if $(PEERS),--peers $(PEERS))

bench-tabular: $(READY)  ## tabular steps per second beside a C loop, JAX and a NumPy table
	@$(BIN)/python benchmarks/tabular.py

bench-deep: $(READY)  ## deep updates per second beside Stable-Baselines3 (make peers-deep) and eager PyTorch
	@$(BIN)/python benchmarks/deep.py $(if $(wildcard .venv-peers-deep/bin/python),--peers .venv-peers-deep/bin/python)

bench-atari: $(READY)  ## Atari training steps per second beside the limit, and beside other libraries after make peers-deep
	@$(BIN)/python benchmarks/atari.py $(if $(wildcard .venv-peers-deep/bin/python),--peers .venv-peers-deep/bin/python)

atari-smoke: $(READY)  ## all 49 Atari games: trained, stopped, resumed to the same bits, evaluated
	@$(BIN)/python benchmarks/atari_smoke.py

peers: $(READY)  ## make .venv-peers/ with the solvers that bench-planning compares with
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check quantecon mdpsolver pymdptoolbox

peers-deep: $(READY)  ## make .venv-peers-deep/ with the libraries that bench-deep and bench-atari compare with
	@$(PYTHON) -m venv .venv-peers-deep
	@PIP_CONSTRAINT=constraints.txt .venv-peers-deep/bin/python -m pip install --quiet --disable-pip-version-check \
	  torch==2.13.0 stable-baselines3 ale-py opencv-python-headless gym pfrl packaging

faults: $(READY)  ## the full counts: precision of the operators, certificates, resumed solves, saves that are killed
	@$(BIN)/python benchmarks/faults_operators.py
	@$(BIN)/python benchmarks/faults_planning.py
	@$(BIN)/python benchmarks/faults_tabular.py
	@$(BIN)/python benchmarks/faults_runs.py
	@$(BIN)/python benchmarks/faults_storage.py
	@$(BIN)/python benchmarks/faults_studies.py
	@$(BIN)/python benchmarks/faults_envs.py
	@$(BIN)/python benchmarks/faults_atari.py
	@$(BIN)/python benchmarks/faults_watch.py

picture: $(READY)  ## draw the picture of the README anew → docs/gridworld.svg
	@$(BIN)/dynaboltz reproduce --only figure-gridworld-bc --out $(OUT)/picture
	@cp $(OUT)/picture/figure-gridworld-b.svg docs/gridworld.svg

clean:  ## remove .venv/ and out/
	rm -rf $(VENV) $(OUT)
