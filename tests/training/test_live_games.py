"""The games that a run shows while they are played are the games that are played."""

import pytest

from keisei.config_schema import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.selfplay.shard import make_shard, new_rollout
from keisei.shogi import ShogiGame
from keisei.training.live_games import LiveGames
from tests.training.conftest import TINY


def shards_of(*overrides):
    config = load_config(overrides=[*TINY, *overrides])
    agent = PPOAgent(config, "cpu")
    shards = [make_shard(config, index) for index in range(2)]

    def play(index):
        rollout = new_rollout(config)
        shards[index].collect(agent.evaluate, rollout, 0)
        return rollout

    return config, shards, play


STARTS = "env.start_positions=[startpos, 2_pieces, lance]"


@pytest.mark.parametrize("overrides", [(), (STARTS,)])
def test_games_are_followed_from_rollout_to_rollout(overrides):
    config, shards, play = shards_of(*overrides)
    live = LiveGames(config.env.start_sfens(), shards=2)
    known = 0
    for _ in range(4):
        for index in range(2):
            live.follow(index, play(index))
        for game in live.state():
            shard, row = game["game"] % 2, game["game"] // 2
            assert (game["start"], game["moves"]) == shards[shard].games.moves_of(row)
            assert [ply for ply, _ in game["values"]] == list(range(len(game["moves"])))
            known += 1
    assert known >= 12  # a game that has ended on the last move is not shown


def test_values_are_blacks():
    config, _, play = shards_of()
    live = LiveGames(config.env.start_sfens(), shards=2)
    rollout = play(0)
    live.follow(0, rollout)
    game = live.state()[0]
    for t, (ply, value) in enumerate(game["values"][:8]):
        sign = 1 if ply % 2 == 0 else -1
        assert value == pytest.approx(sign * float(rollout.values[t, 0]), abs=1e-3)


def test_a_resumed_run_goes_on_with_its_games():
    config, shards, play = shards_of()
    play(0)
    before = LiveGames(config.env.start_sfens(), shards=2)
    before.go_on([shards[0].state_dict(), {}])
    before.follow(0, play(0))
    shown = {game["game"]: game for game in before.state()}
    assert (shown[0]["start"], shown[0]["moves"]) == shards[0].games.moves_of(0)


def test_after_a_gap_it_waits_for_the_next_game():
    config, shards, play = shards_of("env.move_limit=50", "training.parallel.rollout_length=16")
    live = LiveGames(config.env.start_sfens(), shards=2)
    live.follow(0, play(0))
    play(0)  # was too old to learn from, and is not seen
    live.follow(0, play(0))
    assert live.state() == []
    for _ in range(2):
        live.follow(0, play(0))
    for game in live.state():
        start, moves = shards[0].games.moves_of(game["game"] // 2)
        assert game["moves"] == moves
        ShogiGame.from_moves(start, moves)
