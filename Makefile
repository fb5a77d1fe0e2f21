# `make train` and `make test` do all the set-up by themselves; see README.md.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: train test lint format setup clean

train: setup
	$(BIN)/keisei train

test: setup
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP)

# The constraints file pins every version; torch among them, because another
# version would pull gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
