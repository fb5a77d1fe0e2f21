"""A process for tests: reads weights until the last version is there, and checks every one."""

import argparse

from torch import nn

from keisei.training.parallel.model_sync import ModelReceiver

LAST = 1000


def main():
    parser = argparse.ArgumentParser()
    for name in ("weights", "ready"):
        parser.add_argument(f"--{name}", type=int)
    given = parser.parse_args()
    network = nn.Linear(1000, 300)
    receiver = ModelReceiver(network, given.weights)
    seen = -1
    with open(given.ready, "w") as ready:
        ready.write("ready\n")
    while seen < LAST:
        version = receiver.update()
        assert version >= seen, "versions only grow"
        values = {float(weight.min()) for weight in network.parameters()}
        values |= {float(weight.max()) for weight in network.parameters()}
        assert values == {float(version)}, f"version {version} is torn: {values}"
        seen = version
