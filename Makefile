# Everything here sets up what it needs first: a virtual environment, and Java where there is none.
.DEFAULT_GOAL := help
READY := .venv/ready
RUN := .venv/bin
TESTS_READY := .venv/ready-for-tests
SECONDS :=
APP :=

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## a server at work, to look at in a browser: cameras, or boxes on a belt (APP=idhm; SECONDS=30)
	@$(RUN)/nilometer demo $(APP) $(if $(SECONDS),--seconds $(SECONDS))

test: $(READY) $(TESTS_READY) check  ## run all tests (some twenty minutes)
	@echo "Running the tests (some twenty minutes): those with Spark here, the others beside them"
	@$(RUN)/python -m pytest -q -p no:cacheprovider src tests/unit tests/browser > build/unit-tests.log 2>&1 & \
	others=$$!; $(RUN)/python -m pytest -q tests/spark; spark=$$?; wait $$others; others=$$?; \
	if [ $$others -eq 0 ]; then tail -n 1 build/unit-tests.log; else cat build/unit-tests.log; fi; \
	[ $$others -eq 0 ] && [ $$spark -eq 0 ]

check: $(READY)  ## lint, types, imports
	@echo "Checking style, types and imports"
	@$(RUN)/ruff check --quiet . && $(RUN)/ruff format --check --quiet .
	@$(RUN)/mypy --no-error-summary
	@$(RUN)/lint-imports > build/imports.log || (cat build/imports.log; exit 1)

soak: $(READY) $(TESTS_READY)  ## run the long tests: many more cases, many kills (a quarter of an hour)
	@$(RUN)/python -m pytest -q -m soak --override-ini addopts= -p no:cacheprovider

bench: $(READY)  ## measure against Spark's own joins, checked against DuckDB (half an hour)
	@$(RUN)/python -m benchmarks

experiments: $(READY)  ## repeat the papers' experiments, and write their page (20 minutes)
	@$(RUN)/nilometer experiments all --quick --page docs/experiments.md

lock: $(READY)  ## pin the newest versions of all dependencies
	@scripts/lock.sh

lowest: $(READY) $(TESTS_READY)  ## test with the lowest versions that pyproject.toml allows (ten minutes)
	@scripts/lowest.sh

setup: $(READY)  ## only set up

$(READY): requirements/dev.txt pyproject.toml scripts/set_up.sh
	@scripts/set_up.sh

$(TESTS_READY): $(READY)
	@scripts/set_up.sh tests

clean:  ## remove what was made here
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help demo test check soak bench experiments lock lowest setup clean
