"""Sealed checkpoints with anything in them: what is wrong is one sentence, never a traceback."""

import random
from contextlib import closing

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.runs.checkpoint import CheckpointStore, load_checkpoint, save_checkpoint
from keisei.runs.run import Run
from keisei.trained import export_network, load_trained
from keisei.training.start import open_run, resume_trainer
from keisei.worlds.training import WorldTraining, load_run_config
from keisei.worlds.watch import load_episode_of
from tests.processes import run_keisei

MISSING = object()
JUNK = [None, -1, "x", [], {}, 2**70, np.nan, np.inf, True, b"x", (1, 2), MISSING]
JUNK += [torch.zeros(0), torch.tensor(np.nan), np.zeros(3)]


def places(tree, here=(), depth=0):
    """The ways to values in a state, a few of each kind."""
    if depth < 5 and isinstance(tree, (dict, list, tuple)):
        keys = list(tree)[:12] if isinstance(tree, dict) else range(min(len(tree), 2))
        for key in keys:
            yield (*here, key)
            yield from places(tree[key], (*here, key), depth + 1)


def changed(tree, place, value):
    """The state with another value there."""
    key, *rest = place
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if rest:
        copy[key] = changed(copy[key], rest, value)
    elif value is MISSING:
        del copy[key]
    else:
        copy[key] = value
    return copy


def load(run, path):
    load_trained(path)


def resume(run, path):
    more = ["training.total_timesteps=4096"]
    resume_trainer(run, open_run(str(run.folder), more)[1]).manager.shutdown()


def resume_world(run, path):
    training = WorldTraining(load_run_config(run, ["epochs=9"]), run)
    with closing(training.environment):
        training.load_latest()


def watch(run, path):
    with closing(load_episode_of(run, seed=1)) as environment:
        environment.world.reset()
        environment.take_turn()


def test_a_network_of_thousands_of_blocks_is_not_even_made(runs, tmp_path):
    state = load_checkpoint(CheckpointStore(Run(runs / "first").checkpoints_dir).paths()[-1])
    tiny = torch.zeros(1)
    state["agent"]["network"] |= {f"tower.{number}.bias": tiny for number in range(4000)}
    path = tmp_path / "deep.pt"
    save_checkpoint(path, state)
    with pytest.raises(KeiseiError, match="depth"):
        load_trained(path)


@pytest.mark.filterwarnings("ignore")  # of PyTorch and NumPy, about what they are given
@pytest.mark.parametrize(
    ("name", "use"), [("first", load), ("first", resume), ("hunt", resume_world), ("hunt", watch)]
)
def test_what_a_stranger_sealed_is_used_or_refused_in_one_sentence(runs, name, use):
    run = Run(runs / name)
    *older, path = CheckpointStore(run.checkpoints_dir).paths()
    for one in older:
        one.unlink()
    good = load_checkpoint(path)
    use(run, path)
    ways = random.Random(1).sample([(p, junk) for p in places(good) for junk in JUNK], 60)
    refused = []
    for place, junk in ways:
        save_checkpoint(path, changed(good, place, junk))
        try:
            use(run, path)
        except KeiseiError as error:
            refused.append(str(error))
        except Exception as error:
            raise AssertionError(f"{junk!r} at {place}") from error
    assert len(refused) > 5
    assert not [message for message in refused if "\n" in message]


@pytest.mark.parametrize(
    ("weight", "said"), [(np.nan, "NaN or infinite"), (np.inf, "NaN or inf"), (1e6, "too large")]
)
def test_a_network_with_weights_that_are_not_numbers_is_refused(runs, tmp_path, weight, said):
    path = max((runs / "first/checkpoints").iterdir())
    state = load_checkpoint(path)
    state["agent"]["network"]["stem.bias"][0] = weight
    save_checkpoint(path, state)
    with pytest.raises(KeiseiError, match=said):
        export_network(path, tmp_path / "network.pt")
    assert not (tmp_path / "network.pt").exists()
    if weight == 1e6:
        assert load_trained(path)  # it plays, but not in half precision
        return
    done = run_keisei("rate", path, cwd=tmp_path)
    assert done.returncode == 2
    assert "has NaN or infinite weights" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
