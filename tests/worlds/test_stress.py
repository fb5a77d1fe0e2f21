"""Many agents and large memories."""

import numpy as np

from keisei.worlds import make_environment


def test_a_hundred_agents_learn_in_one_world():
    world = "world_settings={num_agents: 100, height: 40, width: 40, max_turns: 10}"
    small = [f"{kind}.{one}" for kind in ("double_dqn", "ppo") for one in ("hidden=[16]",)]
    settings = [world, "copies=4", "agents=[double_dqn, ppo]", "turn_order=random", *small]
    more = ["double_dqn.replay_ratio=0.1", "ppo.replay_ratio=0.1", "double_dqn.memory=400"]
    with make_environment("cleanup", [*settings, *more]) as environment:
        first = [learner.state["w0"].clone() for _, learner in environment.learners]
        results = environment.run_experiment(3)
        assert len(first) == 100
        assert all(np.isfinite(loss) for loss in results[-1].losses.values())
        changed = [
            not bool((learner.state["w0"] == before).all())
            for (_, learner), before in zip(environment.learners, first, strict=True)
        ]
        assert all(changed)
        places = environment.world.positions
        assert all(len(set(places[:, copy])) == 100 for copy in range(4))


def test_a_large_memory_holds_as_much_as_was_asked_for_and_takes_a_byte_a_cell():
    settings = ["copies=64", "double_dqn.memory=1000000", "double_dqn.hidden=[16]"]
    with make_environment("treasure_hunt", settings) as environment:
        memory = environment.agents[0].model.memory
        assert memory.capacity * memory.copies == 1_000_000
        assert memory.arrays["state"].nbytes == 1_000_000 * 81
        environment.run_experiment(1)
        assert len(memory) == 101  # and what would have been seen after the cut
