"""Where networks are: a GPU if there is one, which these tests do not need.

Tensors of the device `meta` have no numbers, but whoever mixes them with those of another device
gets an error. So they tell whether acting and learning would stay on a GPU.
"""

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.worlds.calibration import Plan
from keisei.worlds.config import load_world_config
from keisei.worlds.learning import ThreadLearning
from keisei.worlds.stack import leaves_of
from tests.worlds.conftest import LEARNERS

OTHERS = ["{kind: ppo, central_critic: true}"]


@pytest.mark.parametrize("kind", [*LEARNERS, *OTHERS])
def test_networks_act_and_learn_on_their_device_and_on_no_other(make, kind):
    environment = make(f"agents=[{kind}]")
    environment.collect_epoch()
    _, learner = environment.learners[0]
    # A minibatch of one agent: its one step is where the agents are elsewhere.
    batch, algorithm = learner.draw(1), learner.algorithm
    seen = learner.memory.newest(1)["state"]
    algorithm.device = torch.device("meta")
    state = {name: tensor.to("meta") for name, tensor in learner.state.items()}
    carried = algorithm.tensor(learner.carried)[None]
    scores, carried = algorithm.answer(state, algorithm.inputs_of(seen), carried)
    leaves = leaves_of(state, algorithm.weights)
    loss = algorithm.loss(leaves, state, batch)
    grads = torch.autograd.grad(loss.sum(), list(leaves.values()))
    algorithm.adam._update(state, dict(zip(leaves, grads, strict=True)), loss.detach())
    algorithm.after_step(state)
    measures = algorithm.measure(state, batch)
    everything = [scores, carried, loss, *state.values(), *measures.values()]
    assert {tensor.device.type for tensor in everything} == {"meta"}


def test_what_is_kept_of_a_run_needs_no_gpu(make):
    environment = make()
    environment.run_epoch()
    _, learner = environment.learners[0]
    learner.state = {name: tensor.to("meta") for name, tensor in learner.state.items()}
    with pytest.raises(NotImplementedError, match="meta"):  # it is copied to the CPU
        learner.state_dict()


def test_what_learned_in_processes_learns_in_a_thread_where_there_is_a_gpu(make):
    environment = make()
    environment._plans[0] = Plan(chunk=1, in_processes=True)  # as a checkpoint may say
    environment.teams[0].algorithm.device = torch.device("meta")
    (group, *_) = environment._form_groups(0, {})
    assert isinstance(group.worker, ThreadLearning)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_auto_is_the_cpu_where_there_is_no_gpu_and_one_that_is_not_there_is_refused(make):
    _, learner = make().learners[0]
    assert learner.algorithm.device.type == "cpu"
    with pytest.raises(KeiseiError, match="device is cuda:9, but PyTorch sees 0 CUDA devices"):
        make("device=cuda:9")


def test_an_unknown_device_is_refused():
    with pytest.raises(KeiseiError, match=r"device.*cuda:N"):
        load_world_config("treasure_hunt", overrides=["device=tpu"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("mode", ["parallel.async_learning=true", "parallel.enabled=false"])
def test_a_run_learns_on_a_gpu(make, kind, mode):
    environment = make(f"agents=[{kind}]", mode)
    results = environment.run_experiment(3)
    assert all(np.isfinite(loss) for loss in results[-1].losses.values())
    _, learner = environment.learners[0]
    assert learner.state["steps"].device.type == "cuda"
    on_cpu = make(f"agents=[{kind}]", mode, "device=cpu")
    on_cpu.load_state_dict(environment.state_dict())
    on_cpu.run_experiment(1)
