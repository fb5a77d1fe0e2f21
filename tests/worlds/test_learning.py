"""It learns."""

import pytest

from keisei.worlds import make_environment

# A small field in which an agent sees everything: quick to learn.
FIELD = "world_settings={height: 7, width: 7, vision: 4, max_turns: 40, num_agents: 2}"


@pytest.mark.parametrize(
    "settings",
    [
        [
            "agents=[double_dqn]",
            "double_dqn.epsilon_epochs=15",
            "double_dqn.hidden=[64]",
            "double_dqn.learning_rate=0.001",
            "double_dqn.replay_ratio=0.02",
        ],
        [
            "agents=[iqn]",
            "iqn.epsilon_epochs=15",
            "iqn.hidden=[64]",
            "iqn.learning_rate=0.001",
            "iqn.replay_ratio=0.02",
        ],
        [
            "agents=[ppo]",
            "ppo.hidden=[64]",
            "ppo.learning_rate=0.002",
            "ppo.replay_ratio=0.02",
        ],
    ],
    ids=["double_dqn", "iqn", "ppo"],
)
def test_agents_get_twice_as_much_as_random_ones(settings):
    quick = [FIELD, "copies=64", "world_settings.start_things=8"]
    with make_environment("treasure_hunt", [*quick, "agents=[random]"]) as environment:
        chance = environment.run_experiment(3)[-1].returns.mean()
    with make_environment("treasure_hunt", [*quick, *settings]) as environment:
        epochs = (environment.run_experiment(1)[-1].returns for _ in range(30))
        assert any((learned > 2 * chance).all() for learned in epochs)


@pytest.mark.parametrize("mode", ["parallel.enabled=true", "parallel.enabled=false"])
def test_each_agent_may_have_its_own_budget_of_training_steps(make, mode):
    environment = make("agents=[{kind: ppo, replay_ratio: 0.1}, ppo]", mode)
    environment.run_experiment(2)
    steps = [int(learner.state["steps"]) for _, learner in environment.learners]
    assert steps == [16, 8]  # 2 epochs x 20 turns x 4 copies x 0.1, and x 0.05
