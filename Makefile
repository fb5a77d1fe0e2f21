# `make play`, `make train` and `make test` do all the set-up by themselves; see README.md.
PYTHON ?= python3
BIN := .venv/bin
# Two stamps: what Keisei needs to run, and on top of it what its developers need.
RUNS := .venv/.installed
DEVELOPS := .venv/.developed
INSTALL := pip install --quiet --disable-pip-version-check
PEERS := sb3 rllib sample_factory pgx openspiel

.PHONY: play train test test-quick coverage mutants soak docs lint format setup web constraints peers peers-benchmark clean

play: $(RUNS)
	$(BIN)/keisei serve

train: $(RUNS)
	$(BIN)/keisei train -c quick

# The tests start hundreds of processes: what they import is compiled once, whatever the shell says.
test test-quick coverage: export PYTHONDONTWRITEBYTECODE =

# One test more at a time than there are cores: many of them wait for processes.
AT_ONCE = $(shell echo $$(($$(nproc) + 1)))

# All tests.
test: $(DEVELOPS)
	$(BIN)/pytest -n $(AT_ONCE)

# What to run after each change: all but the tests that take seconds each.
test-quick: $(DEVELOPS)
	$(BIN)/pytest -n $(AT_ONCE) -m 'not slow'

# How much of the parallel part the tests run, workers included. Ray's side is not looked at: its
# tests are in tests/cluster, and its workers are processes of Ray's.
coverage: $(DEVELOPS)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests/parallel
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --include 'keisei/training/parallel/*' \
	  --omit '*/ray_*' --fail-under 90

# Faults put into a copy of the code, one at a time: do the tests notice?
mutants: $(DEVELOPS)
	$(BIN)/python scripts/mutants.py

# The site of docs/ in site/; what MkDocs would only warn of is an error.
docs: $(DEVELOPS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Does the memory of a run with 100 agents stay flat for an hour?
soak: $(DEVELOPS)
	$(BIN)/python scripts/soak_worlds.py

lint: $(DEVELOPS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEVELOPS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The page of `keisei serve`, from web/ into keisei/web/static. Only those who change it need Node.
web: $(RUNS)
	$(BIN)/python web/scripts/make_types.py
	cd web && npm ci --no-fund --no-audit && npm run check && npm run build

setup: $(RUNS)

# constraints.txt pins every version of both. docs/install.md: PyTorch for a CPU, or for a GPU.
$(RUNS): pyproject.toml constraints.txt
	@echo 'Setting up .venv: once, for a minute or two.'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/$(INSTALL) -c constraints.txt -e .
	touch $@

$(DEVELOPS): $(RUNS)
	$(BIN)/$(INSTALL) -c constraints.txt -e '.[dev]'
	touch $@

# New pins: the newest versions that fit pyproject.toml, in a fresh environment.
constraints:
	rm -rf .venv-constraints && $(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/pip install --quiet 'torch==2.13.0' '.[dev]'
	(echo '# Every version that is installed; written by `make constraints`.'; \
	 .venv-constraints/bin/pip freeze --exclude keisei | sed 's/+cpu$$//') > constraints.txt
	rm -rf .venv-constraints

# Other systems, each in an environment of its own, to measure Keisei beside them (Python 3.11).
peers: $(DEVELOPS) $(PEERS:%=.venv-peers/%/.installed)

# Keisei comes without its dependencies: those it needs here are pinned with the peer's.
.venv-peers/%/.installed: benchmarks/peers/requirements-%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/$(INSTALL) -r $<
	! grep -q '^torch==' $< || \
	  $(@D)/bin/$(INSTALL) --no-deps -e .
	touch $@

peers-benchmark: peers
	$(BIN)/python benchmarks/peers/run.py
	$(BIN)/python benchmarks/peers/worlds.py
	$(BIN)/python benchmarks/peers/race.py --minutes 5

clean:
	rm -rf .venv .venv-peers build dist site *.egg-info
