import os
import sys

import pytest

from tests.docs.pages import ROOT, blocks

# Read at import. Two tests run at once: each has one thread for PyTorch, or they would wait for
# each other's. Slots of shared memory are handed out full of what is plainly wrong.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KEISEI_POISON_SLOTS", "1")

# Tests that one process runs, one after another: clusters of Ray would find each other, the pages
# of the docs share what a reader has made, npm installs into one folder, and others share what
# takes seconds to make. (pytest-xdist's own groups do nothing under pytest 9.2, which no longer
# reads the name that they write.)
TOGETHER = (
    "tests/cli/test_runs_folder.py",
    "tests/cluster/",
    "tests/docs/test_commands.py",
    "tests/docs/test_site.py",
    "tests/web/browser/",
    "tests/web/test_bundle.py",
)


def pytest_xdist_make_scheduler(config, log):
    """The largest groups first; other tests are given out one by one, to whoever is free."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)

    return Scheduling(config, log)


# What `make test-quick` leaves out: whole trainings, failures of processes, browsers, the docs.
SLOW = (
    "tests/benchmarks/",
    "tests/cli/test_runs_folder.py",
    "tests/cluster/",
    "tests/core/test_gumbel_learner.py",
    "tests/core/test_learning.py",
    "tests/core/test_ppo_agent.py::test_before_any_update_the_ratio_is_one_and_nothing_is_clipped[full",
    "tests/core/test_precision.py",
    "tests/docs/",
    "tests/evaluation/test_calibration.py",
    "tests/evaluation/test_ladder.py",
    "tests/evaluation/test_pool.py",
    "tests/evaluation/test_rate.py::test_over_500_players",
    "tests/evaluation/test_stopping.py",
    "tests/faults/",
    "tests/library/",
    "tests/parallel/test_async.py",
    "tests/parallel/test_central_inference.py",
    "tests/parallel/test_failures.py",
    "tests/parallel/test_model_sync.py",
    "tests/parallel/test_opponents.py",
    "tests/parallel/test_other_load.py",
    "tests/parallel/test_settings.py",
    "tests/scripts/",
    "tests/shogi/test_vector_shogi.py::test_hundreds_of_random_games",
    "tests/training/test_checkpoint.py",
    "tests/training/test_display.py",
    "tests/training/test_learners.py",
    "tests/training/test_rating.py",
    "tests/training/test_reference.py",
    "tests/training/test_resuming.py",
    "tests/training/test_stretches.py",
    "tests/training/test_training_",
    "tests/usi/test_engine.py::test_the_tree_takes_no_more_memory",
    "tests/usi/test_foreign_programs.py",
    "tests/usi/test_fuzz.py",
    "tests/web/browser/",
    "tests/web/test_bundle.py",
    "tests/web/test_fuzz.py",
    "tests/web/test_hostile",
    "tests/web/test_server.py",
    "tests/web/test_streams.py",
    "tests/worlds/test_benchmark.py",
    "tests/worlds/test_cross_play.py",
    "tests/worlds/test_ends.py",
    "tests/worlds/test_failures.py",
    "tests/worlds/test_learning.py",
    "tests/worlds/test_networks.py::test_a_gru_remembers",
    "tests/worlds/test_own_model.py",
    "tests/worlds/test_own_world.py",
    "tests/worlds/test_run.py",
    "tests/worlds/test_schelling.py",
    "tests/worlds/test_split_world.py",
    "tests/worlds/test_stress.py",
    "tests/worlds/test_sweep.py",
    "tests/worlds/test_tutorial.py",
)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    # Short ones last: nobody waits at the end for another who has just begun a long one.
    items.sort(key=lambda item: not item.nodeid.startswith(SLOW))


HARVEST = blocks(ROOT / "docs/worlds/tutorial.md", "python")[0]


@pytest.fixture
def harvest_folder(tmp_path, monkeypatch):
    """The current folder, with the tutorial's world as `harvest.py`; it is not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "harvest.py").write_text(HARVEST, encoding="utf-8")
    yield tmp_path
    for name in set(sys.modules) - before:  # a later test has other files of these names
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
