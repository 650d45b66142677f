.DEFAULT_GOAL := help
.PHONY: help demo test mutants conformance faults soak lint docs bench bench-peers bench-latency services setup upgrade clean

BIN := .venv/bin
READY := .venv/.ready
BENCH := .venv/.bench

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY)  ## run a stateful flow on Spark, kill it, and see that nothing is lost or doubled
	@$(BIN)/python examples/demo.py

test: $(READY)  ## run every test, quick ones first, JOBS=2 at a time (ARGS="-k batch" for pytest)
	@$(BIN)/python -m pytest --numprocesses $(or $(JOBS),2) --dist loadfile \
		--no-loadscope-reorder $(ARGS)

mutants: $(READY)  ## change one line at a time and see that a test notices (ARGS="frontier -j 2")
	@$(BIN)/python tests/mutants/run.py $(ARGS)

conformance: $(READY)  ## compare Spark with the simulation on many more random flows (SEEDS=200)
	@CUTWATER_SEEDS=$(or $(SEEDS),100) HYPOTHESIS_PROFILE=thorough \
		$(BIN)/python -m pytest tests/conformance $(ARGS)

faults: $(READY)  ## draw faults for two hours; goes on where it was (FRESH=1, MINUTES=30)
	@if [ -n "$(FRESH)" ]; then rm -rf .faults; fi
	@PYTHONPATH=tests CUTWATER_PASSED=.faults/passed.json CUTWATER_MINUTES=$(MINUTES) \
		$(BIN)/python -m pytest -p support.faults.resuming \
		-o python_files='test_*.py campaign_*.py' tests/faults $(ARGS)

soak: $(READY)  ## an hour of steady load with a kill every minute (SOAK_SECONDS=300 for less)
	@PYTHONPATH=tests $(BIN)/python tests/faults/soak.py --seconds $(or $(SOAK_SECONDS),3600) \
		--json .faults/soak.json

lint: $(READY)  ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: $(READY)  ## make the documentation site, in build/docs
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	@echo "the site is build/docs/index.html"

bench: $(BENCH)  ## measure speed beside plain Spark, in short (under ten minutes)
	@for name in keyed_state latency state_size recovery; do \
		$(BIN)/python benchmarks/$$name.py --quick --json benchmarks/results/$$name.json \
			--plot benchmarks/results/$$name.svg || exit 1; \
	done

bench-peers: $(BENCH)  ## install Bytewax, PyFlink and Pathway beside, and measure them
	@PYTHON="$(PYTHON)" scripts/peers
	@$(BIN)/python benchmarks/peers/compare.py --json benchmarks/results/peers.json \
		--plot benchmarks/results/peers.svg $(ARGS)

bench-latency: $(BENCH)  ## repeat the experiment of P2 beside Flink; goes on where it was (ARGS="--kills")
	@PYTHON="$(PYTHON)" scripts/peers pyflink
	@$(BIN)/python benchmarks/experiment/run.py $(ARGS)

$(BENCH): $(READY)
	@$(BIN)/python -m pip --quiet --disable-pip-version-check install --editable '.[bench]' \
		--constraint constraints.txt
	@touch $@

services: $(READY)  ## install what some tests need beyond Python (as root, on Debian)
	@scripts/services

setup: $(READY)  ## make .venv with everything in it (PYTHON=... chooses the interpreter)
	@echo ".venv is ready"

$(READY): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" scripts/setup
	@touch $@

upgrade:  ## write constraints.txt anew from the newest versions
	@PYTHON="$(PYTHON)" scripts/setup --upgrade
	@touch $(READY)

clean:  ## remove .venv and everything that can be made again
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
