"""The learner's loop by hand: workers play, an agent learns, and the workers get its weights.

`keisei train` does this and much more (checkpoints, metrics, evaluation); this is what is at its
heart. It needs no `if __name__ == "__main__"`: workers do not import this file.
"""

from keisei.config_schema import load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import ParallelManager

config = load_config(
    overrides=[
        "training.parallel.num_workers=2",
        "training.parallel.num_envs_per_worker=16",
        "training.parallel.rollout_length=32",
    ]
)
agent = PPOAgent(config)
buffer = ExperienceBuffer(config.training.gamma, config.training.lambda_gae)

with ParallelManager(config, agent) as manager:
    for update in range(3):
        for rollout in manager.collect_experiences():
            buffer.add_batch(rollout)
        buffer.compute_advantages_and_returns()
        metrics = agent.learn(buffer)
        buffer.clear()
        manager.synchronize_models()
        print(f"update {update}: version {agent.version}, entropy {metrics['entropy']:.2f}")
    statistics = manager.get_statistics()

print(f"{statistics['total_steps']} moves, {statistics['total_games']} games")
for index, worker in statistics["workers"].items():
    print(f"worker {index}: {worker['steps_per_s']:.0f} moves/s, busy {worker['busy']:.0%}")
