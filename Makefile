# Everything here sets up what it needs first: a virtual environment, and Java where there is none.
.DEFAULT_GOAL := help
RUN := .venv/bin
DEMO_READY := .venv/ready-demo
MINING_READY := .venv/ready-mining
READY := .venv/ready-tests
SOAK_READY := .venv/ready-soak
SECONDS :=
APP :=
SEEDS := 1

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO_READY) $(if $(APP),$(MINING_READY))  ## a server at work, to look at in a browser: cameras, or boxes on a belt (APP=idhm; SECONDS=30)
	@$(RUN)/nilometer demo $(APP) $(if $(SECONDS),--seconds $(SECONDS))

test: check  ## run all tests (half an hour on two cores)
	@$(RUN)/python -m compileall -q src papers/src tests
	@$(RUN)/python -m tests

check: $(READY)  ## lint, types, imports, and that the pinned versions install everywhere
	@echo "Checking style, types and imports"
	@$(RUN)/ruff check --quiet . && $(RUN)/ruff format --check --quiet .
	@$(RUN)/mypy --no-error-summary
	@$(RUN)/lint-imports > build/imports.log || (cat build/imports.log; exit 1)
	@$(RUN)/python scripts/check_lock.py requirements

soak: $(SOAK_READY)  ## run the long tests: many more cases, many kills (long)
	@NILOMETER_EXAMPLES=100 $(RUN)/python -m pytest -q -m "soak or generated or one_of" --override-ini addopts= -p no:cacheprovider

faults: $(READY)  ## kill, pause, fill and cut a plant at work, on one machine and on a cluster, 300 times (two hours; goes on where it was)
	@$(RUN)/python -m tests.fault_campaign

bench: $(READY)  ## measure against Spark's own joins, checked against DuckDB (half an hour)
	@$(RUN)/python -m benchmarks

experiments: $(READY)  ## repeat the papers' experiments, and write their page (an hour; FULL=1: with the papers' parameters, a night and more, goes on where it was; SEEDS=3: each with so many seeds)
ifdef FULL
	@$(RUN)/nilometer experiments all --resume --seeds $(SEEDS) --output docs/experiments_full --page docs/experiments_full.md
else
	@$(RUN)/nilometer experiments all --quick --seeds $(SEEDS) --output docs/experiments --page docs/experiments.md
endif

docs: $(READY)  ## the documentation as a site, to be opened without a server: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

lock:  ## pin the newest versions of all dependencies
	@scripts/lock.sh --upgrade

fresh:  ## run demo and test in minimal Debian roots, from a clone (DEBIAN="bookworm trixie")
	@scripts/fresh.sh $(DEBIAN)

lowest: $(READY)  ## test with the lowest versions that pyproject.toml allows (ten minutes)
	@scripts/lowest.sh

spark-versions:  ## run the smoke suite on Spark 4.0 to 4.3 (SPARKS="4.0", PYTHONS="3.11"; minutes for each)
	@scripts/spark_versions.sh

setup: $(READY)  ## only set up

$(DEMO_READY): requirements/demo.txt pyproject.toml scripts/set_up.sh
	@scripts/set_up.sh demo

$(MINING_READY): $(DEMO_READY) requirements/mining.txt papers/pyproject.toml
	@scripts/set_up.sh mining

$(READY): $(DEMO_READY) requirements/dev.txt papers/pyproject.toml
	@scripts/set_up.sh tests

$(SOAK_READY): $(READY) requirements/soak.txt
	@scripts/set_up.sh soak

clean:  ## remove what was made here
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: faults help demo test check soak bench experiments docs lock fresh lowest spark-versions setup clean
