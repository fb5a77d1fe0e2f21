"""Shogi as a Gymnasium environment: an agent that moves at random, against the network."""

import gymnasium

import keisei
import keisei.shogi.gymnasium_env  # registers keisei/Shogi-v0

net = keisei.load("shipped")


def opponent(game: keisei.shogi.ShogiGame) -> str:
    """The network's likeliest move."""
    return next(iter(net.policy(game)))


env = gymnasium.make("keisei/Shogi-v0", opponent=opponent)
for episode in range(3):
    _, info = env.reset(seed=episode)
    over = cut = False
    moves = 0
    while not (over or cut):
        action = env.action_space.sample(info["action_mask"])
        _, reward, over, cut, info = env.step(action)
        moves += 1
    print(f"as {info['side']}, {moves} moves: {info['outcome']}, reward {reward:+.0f}")
