import os

import numpy as np
import pytest
import torch
from torch import nn

from keisei.processes import line
from keisei.training.parallel.model_sync import (
    ModelReceiver,
    ModelSynchronizer,
    SyncError,
    pack_weights,
    unpack_weights,
)
from tests.parallel.reading import LAST


def filled(value):
    network = nn.Linear(1000, 300)
    for weight in network.parameters():
        weight.data.fill_(value)
    return network


def start_reader(weights):
    """A process that reads; it has begun."""
    ready, tell = os.pipe()
    files = {"weights": [weights], "ready": [tell]}
    reader = line._nursery.start("tests.parallel.reading", files, "", True)
    os.close(tell)
    with open(ready) as told:
        assert told.readline() == "ready\n"
    return reader


def test_readers_see_whole_versions_only_while_the_learner_writes_without_pause():
    network = filled(0)
    synchronizer = ModelSynchronizer(network)
    synchronizer.publish(0)
    readers = [start_reader(synchronizer.shared.fd) for _ in range(2)]
    for version in range(1, LAST + 1):
        for weight in network.parameters():
            weight.data.fill_(version)
        synchronizer.publish(version)
    assert [reader.wait(200) for reader in readers] == [0, 0]
    assert synchronizer.get_sync_stats()["sync_count"] == LAST + 1
    synchronizer.shared.close()


def test_a_version_that_was_half_written_when_the_learner_died_is_not_seen():
    synchronizer = ModelSynchronizer(filled(3))
    synchronizer.publish(3)
    shared = synchronizer.shared
    spare = 1 - int(shared["current"][0])
    shared["sequence"][spare] += 1
    shared["weights"][spare][:1000] = 4
    network = filled(0)
    assert ModelReceiver(network, os.dup(shared.fd)).update() == 3
    assert float(network.weight.detach().min()) == 3
    shared.close()


def test_a_new_version_leaves_the_one_before_it_whole_for_those_who_are_reading_it():
    network = filled(3)
    synchronizer = ModelSynchronizer(network)
    synchronizer.publish(3)
    shared = synchronizer.shared
    read = int(shared["current"][0])
    network.weight.data.fill_(4)
    synchronizer.publish(4)
    assert shared["weights"][read].min() == 3
    assert shared["version"].tolist()[read] == 3
    shared.close()


def test_weights_that_never_become_whole_are_an_error(monkeypatch):
    monkeypatch.setattr("keisei.training.parallel.model_sync.READ_TIMEOUT", 0.05)
    synchronizer = ModelSynchronizer(filled(1))
    synchronizer.publish(1)
    synchronizer.shared["checksum"][:] += 1
    with pytest.raises(SyncError, match="no complete set of weights"):
        ModelReceiver(filled(0), os.dup(synchronizer.shared.fd)).update()
    synchronizer.shared.close()


def test_packed_weights_are_the_same_again_and_half_precision_rounds_them():
    network, other = nn.Linear(7, 3), nn.Linear(7, 3)
    unpack_weights(other, pack_weights(network))
    assert torch.equal(network.weight, other.weight)
    unpack_weights(other, pack_weights(network, half=True))
    assert torch.equal(network.weight.half().float(), other.weight)
    with pytest.raises(SyncError, match="got 30 weights for a network that has 24"):
        unpack_weights(other, np.zeros(30, np.float32))
