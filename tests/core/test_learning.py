"""Learning that cannot be luck: positions where few of many moves are right."""

import numpy as np
import pytest
from rsshogi.core import Board

from keisei.config_schema import load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.policy import best
from keisei.core.ppo_agent import PPOAgent
from keisei.core.rollout import empty_rollout
from keisei.selfplay.shard import SelfPlayShard
from keisei.shogi import Positions, ShogiGame, VectorShogi
from keisei.shogi.material import material


def mating(game: ShogiGame) -> set[int]:
    """The actions that mate at once."""
    if Board(game.sfen()).solve_mate_in_one() is None:
        return set()
    return {a for a in game.legal_actions().tolist() if after(game, a).outcome}


def winning_a_big_piece(game: ShogiGame) -> set[int]:
    """The actions that take a rook or a bishop for nothing, or more."""
    before = material(game.observation()[None])[0]
    gains = {}
    for action in game.legal_actions().tolist():
        gains[action] = -material(after(game, action).observation()[None])[0] - before
    return {action for action, gain in gains.items() if gain >= 16}


def after(game: ShogiGame, action: int) -> ShogiGame:
    twin = game.copy()
    twin.step(action)
    return twin


def positions_where(right, count: int) -> dict[str, set[int]]:
    """Positions of random games in which at most a tenth of the moves are right."""
    found: dict[str, set[int]] = {}
    games = VectorShogi(32, seed=11)
    while len(found) < count:
        games.step(games.random_actions())
        for g in np.flatnonzero(games.move_counts > 20)[:2]:
            game = ShogiGame(games.game(g).sfen())
            answers = right(game)
            if answers and len(answers) <= len(game.legal_actions()) / 10:
                found[game.sfen()] = answers
    return dict(list(found.items())[:count])


def accuracy(agent: PPOAgent, answers: dict[str, set[int]]) -> float:
    hits = 0
    for sfen, right in answers.items():
        game = ShogiGame(sfen)
        positions = Positions.of([game.observation()], [game.legal_actions()])
        at = best(agent.evaluate(positions).log_probs, positions.offsets)[0]
        hits += int(positions.legal[at]) in right
    return hits / len(answers)


@pytest.mark.parametrize(
    ("right", "move_limit", "material_reward"),
    [(mating, 1, 0.0), (winning_a_big_piece, 2, 0.02)],
    ids=["mates in one", "hanging pieces"],
)
def test_the_policy_goes_from_chance_to_over_80_percent_right(right, move_limit, material_reward):
    answers = positions_where(right, 24)
    config = load_config(
        overrides=[
            "model.depth=0",
            "model.width=32",
            "training.minibatch_size=128",
            "training.entropy_coef=0",
            "training.ppo_epochs=2",
            "training.lambda_gae=0",
            "training.learning_rate=0.01",
            "training.target_kl=0",
        ]
    )
    agent = PPOAgent(config, "cpu")
    chance = accuracy(agent, answers)
    assert chance < 0.3
    shard = SelfPlayShard(
        24, 1, move_limit=move_limit, material_reward=material_reward, start_sfens=list(answers)
    )
    buffer = ExperienceBuffer(gamma=1.0, lambda_gae=0.0)
    for _ in range(60):
        buffer.clear()
        rollout = empty_rollout(16, 24)
        shard.collect(agent.evaluate, rollout, agent.version)
        buffer.add_batch(rollout)
        buffer.compute_advantages_and_returns()
        agent.learn(buffer)
        if (after_learning := accuracy(agent, answers)) > 0.8:
            break
    assert after_learning > 0.8
