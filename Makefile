# One target per verb; each does the set-up that it needs. `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install demo test lint types unit emulated openapi client docs docs-serve figures dist clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

$(READY): pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

install: $(READY)  ## virtual environment with the project and its tools

demo: $(READY)  ## train on emoji, serve, search pictures by words and words by pictures
	$(BIN)/ccq demo

test: lint types unit  ## everything that CI checks

lint: $(READY)  ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## static types
	$(BIN)/mypy

# One process of tests for each processor: threads of the matrix library in each would wait for those of the others.
unit: $(READY)  ## the tests
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile

emulated: $(READY)  ## the tests of the kernels on CPUs that qemu-user stands in for: Nehalem, Haswell, ARM
	VENV=$(VENV) tests/emulated.sh nehalem haswell aarch64

openapi: $(READY)  ## write openapi/openapi.json anew from the app
	$(BIN)/python -m service.openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json

client: $(READY)  ## write the client without coroutines anew from that with them
	$(BIN)/python -P ccq_client/generate.py

docs: $(READY)  ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-serve: $(READY)  ## the same on http://127.0.0.1:8001, made anew while it is written
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --strict --dev-addr 127.0.0.1:8001

figures: $(READY)  ## draw the figures of docs/images anew
	$(BIN)/python -m docsite.figures

dist: $(READY)  ## sdist and wheel, the wheel tried in an empty environment
	rm -rf build/dist && $(BIN)/python -m build --outdir build/dist .
	rm -rf build/empty && $(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check build/dist/*.whl
	cd build && empty/bin/python -P ../tests/installed.py && empty/bin/ccq --version && empty/bin/ccq demo

clean:  ## remove what the targets made
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
