"""Coins, scripted strategies, and whether a world is a dilemma."""

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.worlds.coins import NAMES, Coins
from keisei.worlds.schelling import Payoffs, measure
from keisei.worlds.scripts import Strategy, make_script
from keisei.worlds.stag_hunt import StagHunt

UP, DOWN, LEFT, RIGHT, STAY = range(5)


def place(world, agent, row, column):
    world.grid[1][world.positions[agent]] = 0
    world.positions[agent] = world.first_cell + world.cell(row, column)
    world.grid[1][world.positions[agent]] = world.bodies[agent]


@pytest.fixture
def coins():
    """Agent 0 left of a coin and agent 1 right of it; the coin is agent 0's in copy 0 alone."""
    world = Coins(copies=2, seed=1)
    world.reset()
    place(world, 0, 3, 2)
    place(world, 1, 3, 4)
    world.grid[1][world.first_cell + world.cell(3, 3)] = [world.code[name] for name in NAMES]
    world.coins[:] = 1
    return world


@pytest.mark.parametrize("order", [None, [[1, 1], [0, 0]]], ids=["fixed", "the second first"])
def test_a_coin_pays_who_takes_it_and_costs_its_owner(coins, order):
    order = None if order is None else np.array(order)
    rewards, *_ = coins.step(np.array([[RIGHT, RIGHT], [STAY, STAY]]), order)
    assert rewards.tolist() == [[1, 1], [0, -2]]
    assert coins.coins.tolist() == [0, 0]
    assert coins.metrics()["own coins"].tolist() == [[1, 0], [0, 0]]
    assert coins.metrics()["coins of the other"].tolist() == [[0, 1], [0, 0]]


def test_a_coin_comes_again_and_never_are_there_two(coins):
    rng = np.random.default_rng(1)
    for _ in range(60):
        coins.begin_turn()
        shown = np.isin(coins.grid[1], coins._codes).reshape(coins.copies, -1).sum(axis=1)
        assert shown.tolist() == coins.coins.tolist()
        assert (shown <= 1).all()
        coins.step(rng.integers(0, 5, (2, 2)), coins.draw_order())
    assert coins.own.sum() + coins.others.sum() > 2


def test_a_script_goes_to_what_it_seeks_and_acts_there(coins):
    script = make_script(coins, Strategy((NAMES[0],)), seed=1, agent=0)
    chosen = np.stack([script(coins.pov(0)) for _ in range(200)])
    assert 0.85 < (chosen[:, 0] == RIGHT).mean() < 1  # it wanders now and then
    assert (chosen[:, 1] == RIGHT).mean() < 0.6  # the coin there is not what it seeks
    hunt = StagHunt(copies=1, seed=1, stags=1, hares=0, num_agents=2)
    hunt.reset()
    hunt.grid[1][:] = 0
    place(hunt, 0, 5, 5)
    hunt.put("stag", hunt.first_cell + hunt.cell(5, 6))
    script = make_script(hunt, StagHunt.strategies(0)["cooperate"], seed=1, agent=0)
    chosen = [int(script(hunt.pov(0))[0]) for _ in range(100)]
    assert chosen.count(hunt.actions.index("hunt")) > 80


@pytest.mark.parametrize(
    ("cooperate", "defect", "said"),
    [
        ([0, 3], [1, 5], "a social dilemma, out of greed and fear"),
        ([0, 5], [1, 3], "a social dilemma, out of fear"),
        ([1, 3], [0, 5], "a social dilemma, out of greed"),
        ([2, 5], [1, 3], "not a social dilemma: cooperating is better for each"),
        ([0, 1], [2, 5], "not a social dilemma: all defecting is as good as all cooperating"),
    ],
)
def test_the_verdict_goes_by_what_one_agent_gains(cooperate, defect, said):
    assert Payoffs(cooperate, defect).verdict == said


@pytest.mark.parametrize(
    ("world", "settings", "why"),
    [
        ("coins", ["copies=16"], "greed and fear"),
        ("stag_hunt", ["copies=16"], "fear"),
        ("cleanup", ["copies=16"], "greed"),
        ("prisoners_dilemma", ["copies=16", "world_settings.num_agents=3"], "greed and fear"),
        ("commons_harvest", ["copies=6"], "greed and fear"),
    ],
)
def test_worlds_that_are_called_dilemmas_are(world, settings, why):
    assert measure(world, settings, epochs=1).verdict == f"a social dilemma, out of {why}"


def test_the_diagram_is_one_command_away(tmp_path):
    picture = tmp_path / "coins.png"
    words = ["schelling", "coins", "--plot", str(picture), "--epochs", "1", "-o", "copies=8"]
    done = CliRunner().invoke(app, ["worlds", *words])
    assert done.exit_code == 0, done.stderr
    assert "coins: a social dilemma" in done.stdout
    assert picture.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["treasure_hunt"], "treasure_hunt has no strategies to cooperate and to defect"),
        (["coins", "--plot", "nowhere/a.png"], "there is no folder nowhere"),
        (["pettingzoo:mpe2.simple_spread_v3"], "there is no world 'pettingzoo:mpe2"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(words, said):
    done = CliRunner().invoke(app, ["worlds", "schelling", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
