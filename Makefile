# `make train` and `make test` do all the set-up by themselves; see README.md.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: train test coverage docs lint format setup web constraints clean

train: setup
	$(BIN)/keisei train -c configs/quick.yaml

test: setup
	$(BIN)/pytest

# How much of the parallel part the tests run, workers included.
coverage: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests/parallel
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --include 'keisei/training/parallel/*' --fail-under 90

# The site of docs/ in site/; what MkDocs would only warn of is an error.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The page of `keisei serve`, from web/ into keisei/web/static; only who changes it needs Node.
web:
	cd web && npm ci --no-fund --no-audit && npm run check && npm run build

setup: $(STAMP)

# The constraints file pins every version; torch among them, because another
# version would pull gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Pins anew: the newest versions that fit pyproject.toml, in a fresh environment.
constraints:
	rm -rf .venv-constraints && $(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/pip install --quiet 'torch==2.13.0' '.[dev]'
	(echo '# Every version that is installed; written by `make constraints`.'; \
	 .venv-constraints/bin/pip freeze --exclude keisei | sed 's/+cpu$$//') > constraints.txt
	rm -rf .venv-constraints

clean:
	rm -rf .venv build dist site *.egg-info
