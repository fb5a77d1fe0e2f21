# `make play`, `make train` and `make test` do all the set-up by themselves; see README.md.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PEERS := sb3 rllib sample_factory pgx openspiel

.PHONY: play train test coverage docs lint format setup web constraints peers peers-benchmark clean

play: setup
	$(BIN)/keisei serve

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

# Other systems, each in an environment of its own, to measure Keisei beside them (Python 3.11).
peers: setup $(PEERS:%=.venv-peers/%/.installed)

# Keisei comes without its dependencies: those it needs here are pinned with the peer's.
.venv-peers/%/.installed: benchmarks/peers/requirements-%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	! grep -q '^torch==' $< || \
	  $(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

peers-benchmark: peers
	$(BIN)/python benchmarks/peers/run.py

clean:
	rm -rf .venv .venv-peers build dist site *.egg-info
