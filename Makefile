# One word runs every check: `make test`. Nothing is needed but make and Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-options --no-header --no-annotate --strip-extras
JOBS ?= 4
SEEDS ?= 300
FROM ?= 0
# JOBS processes; what takes long is dealt to all of them (tests/dealing.py).
PYTEST = $(BIN)/pytest -n $(JOBS) --dist worksteal --durations=20 -m 'not long' $(ARGS)

.PHONY: help venv rivals demo test test-long simulate format check audit lock generate clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tailrace needs Python 3.11 or newer; set PYTHON=…")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements.lock
	PYTHONWARNINGS="ignore:Editable installation" $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-deps --no-build-isolation --editable .
	mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/tailrace
	touch $@

venv: $(STAMP) ## create .venv from the lock

rivals: $(STAMP) ## install what `tailrace bench --scenario rivals` compares with
	$(BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-rivals.lock

demo: $(STAMP) ## a guided run on real input, half a minute
	$(BIN)/tailrace demo

format: $(STAMP) ## rewrite the sources in the one format
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

check: $(STAMP) ## format, lint, types, import contracts, generated code, known vulnerabilities where their database answers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p tailrace
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tailrace.wire.generate --check
	$(BIN)/python -m tailrace.assembly.schemas --check
	$(BIN)/python -m tailrace.reference --check
	$(PYTHON) tests/known_vulnerabilities.py

test: $(STAMP) ## every check and every test that ends within minutes
	@# What is wrong most often is told at once; the other checks run beside the tests, and say what they found after them.
	@# Tests start some hundred processes; where PYTHONDONTWRITEBYTECODE is set, each would compile the whole program.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# The tests are compiled once, with what pytest writes into them, not by each of the processes that share them; the other
	@# checks begin beside that, for which one core is enough.
	@said=$$(mktemp); trap 'rm -f $$said' EXIT; trap 'kill $$checks; exit 130' INT TERM; \
	$(MAKE) --no-print-directory check >$$said 2>&1 & checks=$$!; \
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --collect-only -qq -m 'not long' $(ARGS) >/dev/null; \
	$(BIN)/python -m compileall -q $(filter-out tests/,$(wildcard */)) $(wildcard *.py); \
	env -u PYTHONDONTWRITEBYTECODE $(PYTEST); tested=$$?; \
	wait $$checks; checked=$$?; cat $$said; exit $$((tested ? tested : checked))

test-long: $(STAMP) ## what takes longer, a little over two hours in all; says how far it is
	@# A process that a fault killed starts as an installed one does, compiled: how soon it is back is among what is asked.
	$(BIN)/python -m compileall -q $(filter-out tests/,$(wildcard */)) $(wildcard *.py)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -m long -v --capture=sys --durations=0 --durations-min=5 $(ARGS)

audit: ## known vulnerabilities of what the locks pin, as `make check` does; fails where their database is out of reach
	$(PYTHON) tests/known_vulnerabilities.py --required

simulate: $(STAMP) ## seeded worlds that try to break the promises: SEEDS=N FROM=SEED
	$(BIN)/tailrace simulate --seeds $(SEEDS) --from $(FROM)

generate: $(STAMP) ## write the generated code, schemas and reference again
	$(BIN)/python -m tailrace.wire.generate
	$(BIN)/python -m tailrace.assembly.schemas
	$(BIN)/python -m tailrace.reference

lock: $(STAMP) ## pin versions and hashes again from requirements*.in
	$(COMPILE) --output-file requirements.lock requirements-dev.in
	$(COMPILE) --output-file requirements-rivals.lock requirements-rivals.in
	$(COMPILE) --output-file requirements-image.lock requirements-image.in
	$(COMPILE) --output-file requirements-audit.lock requirements-audit.in

clean: ## remove what the targets above made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
