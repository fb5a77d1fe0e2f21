import os
import subprocess
import sys

import pytest
import torch

from keisei.config_schema import PRESETS, load_config
from keisei.core.neural_network import ActorCriticResTower
from keisei.core.policy import evaluate
from keisei.core.ppo_agent import PPOAgent
from keisei.core.runtime import traced, tracing_pays
from keisei.models import SHIPPED_PATH
from keisei.processes.machine import keep_freed_memory
from keisei.shogi import Positions, ShogiGame
from keisei.trained import load_trained


@pytest.mark.parametrize("head", ["from_to", "flat"])
def test_a_traced_network_gives_the_same_bits_for_any_batch_and_for_new_weights(head):
    size = ["model.se_ratio=0.25", "model.width=16", f"model.policy_head={head}"]
    network = PPOAgent(load_config(overrides=size), "cpu").network
    forward = traced(network, 8)
    for _ in range(2):
        for batch in (8, 1, 5):
            planes = torch.rand(batch, 60, 9, 9)
            with torch.inference_mode():
                for one, two in zip(network(planes), forward(planes), strict=True):
                    assert torch.equal(one, two)
        for weight in network.parameters():
            weight.data.add_(torch.randn_like(weight) * 0.1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_computes_side_by_side_too():
    compute_twice = """
import os, sys
from keisei.core.runtime import side_by_side
def compute():
    with side_by_side() as both:
        assert both(abs, [-1, -2]) == [1, 2]
compute()
child = os.fork()
compute()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", compute_twice], check=True, timeout=120)


def test_a_network_that_cannot_be_traced_is_run_as_it_is():
    class Untraceable(ActorCriticResTower):
        def forward(self, planes):
            if torch.jit.is_tracing():
                raise RuntimeError("not today")
            return super().forward(planes)

    network = Untraceable(*PRESETS["tiny"])
    assert traced(network, 4) is network
    assert tracing_pays(network, 4, seconds=0.01) in (True, False)


def test_a_network_from_a_file_plays_traced_and_says_the_same():
    policy, game = load_trained(SHIPPED_PATH).policy, ShogiGame()
    position = Positions.of([game.observation()], [game.legal_actions()])
    plain, fast = evaluate(policy.args[0], position), policy(position)
    assert isinstance(policy.keywords["forward"], torch.jit.ScriptModule)
    assert (plain.log_probs == fast.log_probs).all()
    assert plain.values == fast.values


def test_keeping_freed_memory_changes_no_number():
    network = PPOAgent(load_config(), "cpu").network
    planes = torch.rand(4, 60, 9, 9)
    before = network(planes)
    keep_freed_memory()
    for one, two in zip(before, network(planes), strict=True):
        assert torch.equal(one, two)
