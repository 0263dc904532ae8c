.DEFAULT_GOAL := help
.PHONY: help setup fast check lock test test-slow test-stack soak-dynamodb run bench bench-checkpoints pr
REPO ?= .
NAME ?= $(if $(filter .,$(REPO)),ibid)
PORT ?= 8000
DATA ?= .ibid
SOAK_ON_DYNAMODB = tests/soak/test_soak.py::test_no_promise_is_broken_by_2000_turns_on_dynamodb
# Two processes take tests from one list, and the end of each other's.
PYTEST = .venv/bin/pytest -n 2 --dist worksteal
# Without it each of the many processes that tests start would compile all it imports again.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready  ## make .venv from the lock (only when the lock changed)

.venv/.ready: requirements.lock pyproject.toml
	python3 -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check uv
	VIRTUAL_ENV=.venv .venv/bin/uv pip sync -q --compile-bytecode --require-hashes requirements.lock
	VIRTUAL_ENV=.venv .venv/bin/uv pip install -q --no-deps --no-build-isolation -e .
	touch $@

run: setup  ## serve REPO (a path or an https git URL) on PORT
	.venv/bin/ibid serve --data $(DATA) --port $(PORT) --index '$(REPO)' $(if $(NAME),--name '$(NAME)')

fast: setup  ## format, lint, spelling
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/codespell

check: fast  ## fast, and types, layers, lock
	.venv/bin/mypy
	.venv/bin/lint-imports
	@# names and versions only: a project may add a file to a release that is locked
	.venv/bin/uv pip compile -q --universal --no-annotate --no-header --all-extras --group dev pyproject.toml -c requirements.lock -o .venv/lock.new
	sed '/^ *--hash=/d; s/ \\$$//' requirements.lock | cmp - .venv/lock.new

lock:  ## compile requirements.lock again
	.venv/bin/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --all-extras --group dev pyproject.toml -o requirements.lock

test: setup  ## every test that needs nothing but this repository
	$(PYTEST) -m 'not slow and not model and not ministack'

test-slow: setup  ## the long seeded sweeps
	$(PYTEST) -m 'slow and not ministack' --timeout 1200

test-stack: setup  ## the adapters of AWS, on a stand-in that is installed once into the user's cache
	.venv/bin/python -m tests.fakes.ministack
	$(PYTEST) -m ministack --timeout 600 --deselect $(SOAK_ON_DYNAMODB)

soak-dynamodb: setup  ## 2,000 turns on servers that die, on the stand-in for AWS; not part of CI yet
	.venv/bin/python -m tests.fakes.ministack
	.venv/bin/pytest $(SOAK_ON_DYNAMODB)

bench: setup  ## measure, and write docs/benchmarks.md (IBID_SHARED names the data)
	.venv/bin/python -m tests.bench

bench-checkpoints: setup  ## our checkpoint saver beside its peers, each installed once into the user's cache; writes docs/benchmarks.md
	.venv/bin/python -m tests.bench checkpoints

pr: check test  ## what a pull request must pass
