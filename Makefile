PYTHON ?= python3
UV ?= uv

VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
# Compiling takes most of the time of tests, on one core, and some GiB of memory a process.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo bench gpu-check siege mutants test test-long test-all test-nightly test-services test-sb3 test-mutants lint format format-check typecheck wheel-check docs lock clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## Make .venv with the locked packages and this project, editable

# A new lock gets a new environment, so that nothing the lock has dropped stays behind.
# --clear takes both stamps away first: an interrupted run leaves none.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || \
	{ echo 'Python 3.11, 3.12 or 3.13 is needed, and "$(PYTHON)" is none of them: try  make PYTHON=python3.12 $(or $(MAKECMDGOALS),install)' >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --require-hashes --only-binary :all: -r requirements.lock
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	@rm -f $@
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	$(PIP) check
	@touch $@

demo: install ## Run the main job: 256 lifetimes of a syllabus, with a report in runs/demo
	$(BIN)/jaxsim run examples/syllabi/cl_pole_length.json --agent pd --lifetimes 256 --seed 0 --out runs/demo --overwrite

bench: install ## Measure throughput beside other simulators, with results in runs/bench.json
	$(BIN)/jaxsim bench --json runs/bench.json --plot runs/bench.png

test: install ## Run the tests, but for those that take minutes each
	$(PYTEST) -m 'not long and not nightly and not service'

test-long: install ## Run the tests that take minutes: every level against the original, the hunts
	$(PYTEST) -m 'long and not nightly'

test-all: install ## Run the tests of `make test` and `make test-long` in one go, which compiles less
	$(PYTEST) -m 'not nightly and not service'

test-nightly: install ## Run the largest tests, which `.ci/run` leaves out: 100,000 episodes, mixtures of every level
	$(PYTEST) -m nightly

test-services: install ## Run the tests with services of the machine, which .ci/services installs
	$(PYTEST) --numprocesses 0 -m service

# PyTorch and stable-baselines3 are large, so they lie in an environment on top of .venv.
TORCH ?= torch==2.13.0
SB3 := $(VENV)/sb3

test-sb3: install ## Run the tests with stable-baselines3 (TORCH=... chooses the build of PyTorch)
	@test -x $(SB3)/bin/python || $(BIN)/python -m venv $(SB3)
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
	  "$$($(SB3)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
	$(SB3)/bin/python -m pip --disable-pip-version-check install --quiet "$(TORCH)" "stable-baselines3>=2.4"
	PYTHONPATH="$(CURDIR)" $(SB3)/bin/python -m pytest tests/jaxsim/adapters/test_sb3_adapter.py \
	  "tests/test_notebooks.py::test_notebook_runs[07_other_trainers]"

test-mutants: install ## Run the test of `make mutants`
	$(PIP) install --quiet "cosmic-ray>=8.4"
	$(BIN)/python -m pytest tests/benchmarks/test_mutants.py

# MINUTES of each attack: files that are changed, servers that are sent nonsense, runs that are killed.
MINUTES ?= 2
SEED ?= 0

gpu-check: install ## Check parity, same results and speed on a GPU, and write docs/gpu.json (JAX needs its CUDA extra)
	$(BIN)/python -m benchmarks.gpu_check --out docs/gpu.json

siege: install ## Attack the package, seeded (MINUTES=2 of each attack, SEED=0), and write docs/siege.json
	$(BIN)/python -m benchmarks.siege --minutes $(MINUTES) --seed $(SEED) --out docs/siege.json

# SCOPE: modules and folders; without it, the modules that have changed since SINCE.
SCOPE ?=
SINCE ?= main
NUMBER ?= 20

mutants: install ## Play a seeded sample of mutants (SCOPE="evaluation/sailon" or SINCE=main, NUMBER=20, SEED=0)
	$(PIP) install --quiet "cosmic-ray>=8.4"
	$(BIN)/python -m benchmarks.mutants $(SCOPE) --since $(SINCE) --number $(NUMBER) --seed $(SEED)

lint: install ## Check the code with ruff
	$(BIN)/ruff check .

format: install ## Rewrite the code in the project's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

format-check: install ## Check the format and change nothing
	$(BIN)/ruff format --check .

typecheck: install ## Check the types of both packages with mypy
	$(BIN)/mypy jaxsim evaluation

wheel-check: install ## Build sdist and wheel, and try both outside this folder
	$(BIN)/python .ci/check_wheel.py

# Warnings are errors. One process builds it all, as JAX cannot be forked. Tests of notebooks leave
# them executed in build/notebooks, which the site shows.
docs: install ## Build the site in build/site (NOTEBOOKS=1 executes the notebooks before)
	$(if $(NOTEBOOKS),$(PYTEST) -m long tests/test_notebooks.py)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs build/site

# All extras but sb3, and mutants, one of whose packages is no wheel.
EXTRAS := amqp bench classification cli cluster dask dev docs gymnasium gymnax images l2m notebooks parity plots sciencebirds view

# --fork-strategy fewest gives every Python the same jax and numpy, so that results compare.
lock: ## Write requirements.lock anew from pyproject.toml (needs uv; UPGRADE=1 takes newer versions)
	$(UV) pip compile --quiet --no-config --universal --python-version 3.11 --fork-strategy fewest $(EXTRAS:%=--extra %) \
	  --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	  $(if $(UPGRADE),--upgrade) --output-file requirements.lock pyproject.toml

clean: ## Remove .venv, caches and build output; runs/ stays
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
