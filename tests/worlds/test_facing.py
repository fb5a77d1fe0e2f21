"""Agents that face somewhere: what they see, where they step, what their beams do."""

import numpy as np
import pytest

from keisei.settings import ConfigError
from keisei.worlds import WORLDS, Agent, Environment, load_world_config
from keisei.worlds.beams import ZapWorld
from keisei.worlds.cleanup import Cleanup
from keisei.worlds.commons_harvest import CommonsHarvest
from keisei.worlds.drawing import CELL, colored_text, frame, legend_text, picture
from keisei.worlds.models import RandomModel
from keisei.worlds.prisoners_dilemma import PrisonersDilemma
from keisei.worlds.treasure_hunt import TreasureHunt
from keisei.worlds.watch import keys_of
from tests.worlds.conftest import same, trajectory
from tests.worlds.test_worlds import do, here

UP, RIGHT, DOWN, LEFT = range(4)
ALL = ["treasure_hunt", "cleanup", "tag", "stag_hunt", "coins", "commons_harvest"]
ALL += ["prisoners_dilemma"]


def place(world, *agents):
    """Agents at (row, column, way), in all copies, and nothing else but walls."""
    world.grid[1][:] = 0
    for agent, (row, column, way) in enumerate(agents):
        world.positions[agent] = here(world, row, column)
        world.facing[agent] = way
    world.show()


@pytest.fixture
def hunt():
    world = TreasureHunt(2, 1, height=9, width=9, facing=True, vision=2)
    world.reset()
    return world


@pytest.mark.parametrize(
    ("way", "gem"), [(UP, (2, 5)), (RIGHT, (5, 6)), (DOWN, (6, 3)), (LEFT, (3, 2))]
)
def test_what_is_ahead_is_up_in_the_window_with_one_row_behind(hunt, way, gem):
    place(hunt, (4, 4, way), (7, 7, UP))
    hunt.put("gem", here(hunt, *gem))  # two cells ahead, one to the right
    window = hunt.pov(0)[0].reshape(5, 5)
    assert window[1, 3] == hunt.code["gem"]  # the agent is at 3, 2
    assert window[3, 2] == hunt.code["agent"]
    assert (window == hunt.pov()[0, 0].reshape(5, 5)).all()


@pytest.mark.parametrize("way", range(4))
@pytest.mark.parametrize("others", range(4))
def test_one_sees_where_another_faces_from_ones_own_side(hunt, way, others):
    ahead = {UP: (3, 4), RIGHT: (4, 5), DOWN: (5, 4), LEFT: (4, 3)}[way]
    place(hunt, (4, 4, way), (*ahead, others))
    planes = hunt.views[0].encode(hunt.pov(0))[0].reshape(5, 5, -1)[2, 2]
    seen = {name: planes[hunt.planes.index(name)] for name in hunt.planes[-3:]}
    names = [None, "faces right", "faces back", "faces left"]
    assert [name for name in seen if seen[name]] == [
        name for name in [names[(others - way) % 4]] if name
    ]
    assert planes[hunt.planes.index("agent")] == 1


@pytest.mark.parametrize(
    ("action", "there"),
    [("forward", (4, 5)), ("backward", (4, 3)), ("left", (3, 4)), ("right", (5, 4))],
)
def test_steps_go_by_where_one_faces(hunt, action, there):
    place(hunt, (4, 4, RIGHT), (7, 7, UP))
    do(hunt, action, "turn left")
    assert hunt.places(0) == [there, (7, 7)]
    assert hunt.facing[:, 0].tolist() == [RIGHT, LEFT]


@pytest.fixture
def zapping():
    """Four agents in an empty field, the first of which looks up the column of the second."""
    world = Cleanup(2, 1, height=12, width=12, facing=True, num_agents=4, timeout=3, zap_fine=5)
    world.reset()
    world.grid[0][world.everywhere(world.inside)] = 0
    place(world, (8, 5, UP), (5, 5, UP), (6, 6, UP), (4, 5, UP))
    return world


def test_a_zap_hits_those_ahead_whom_nobody_hides(zapping):
    assert do(zapping, "zap", "stay", "stay", "stay") == [0, -5, -5, 0]
    assert zapping.timed_out()[:, 0].tolist() == [False, True, True, False]
    assert zapping.metrics()["zaps"][:, 0].tolist() == [2, 0, 0, 0]
    place(zapping, (8, 5, UP), (7, 5, UP), (6, 5, UP), (4, 5, UP))
    zapping.out[:] = 0
    assert do(zapping, "zap", "stay", "stay", "stay") == [0, -5, 0, 0]  # two is behind one


def test_walls_stop_a_beam_and_it_ends_after_its_length(zapping):
    zapping.put("wall", here(zapping, 7, 5))
    zapping.put("wall", here(zapping, 7, 6))
    assert do(zapping, "zap", "stay", "stay", "stay") == [0, 0, 0, 0]
    place(zapping, (8, 5, UP), (4, 5, UP), (8, 6, UP), (9, 5, UP))  # too far, beside, behind
    zapping.grid[0][here(zapping, 7, 5)] = zapping.grid[0][here(zapping, 7, 6)] = 0
    assert do(zapping, "zap", "stay", "stay", "stay") == [0, 0, 0, 0]


def test_who_is_hit_is_off_the_map_sees_nothing_and_comes_back_after_the_timeout(zapping):
    do(zapping, "zap", "forward", "stay", "stay")  # the second can no longer step
    away = []
    for _ in range(4):
        away.append(bool(zapping.timed_out()[1, 0]))
        seen = zapping.pov()[1]
        assert (seen.any(axis=1) == zapping.can_act[1]).all()
        assert str(zapping).count("A") == zapping.can_act[:, 0].sum()
        zapping.begin_turn()
        do(zapping, "stay", "clean", "stay", "stay")
    assert away == [True, True, True, False]  # the turn of the zap, and two more
    assert (zapping.look(zapping.positions[1]) > 0).all()


def test_where_no_cell_is_free_nobody_comes_back_yet(zapping):
    zapping.home = np.array([zapping.cell(1, 1)])
    do(zapping, "zap", "stay", "stay", "stay")
    for _ in range(5):
        zapping.begin_turn()
        do(zapping, "stay", "stay", "stay", "stay")
    assert zapping.can_act.sum(axis=0).tolist() == [3, 3]  # one of the two has the cell
    assert zapping.places(0)[1] == (1, 1)


def test_a_cleaning_beam_cleans_the_first_dirt_of_each_ray(zapping):
    for row, column in [(7, 5), (6, 5), (7, 4), (5, 4)]:
        zapping.put("dirt", here(zapping, row, column))
    do(zapping, "clean", "stay", "stay", "stay")
    dirt = [str(zapping).splitlines()[row][column] == "%" for row, column in [(7, 5), (6, 5)]]
    assert dirt == [False, True]
    assert zapping.metrics()["cleaned"][0].tolist() == [2, 2]


def test_a_beam_longer_than_what_is_seen_is_refused():
    with pytest.raises(ConfigError, match="beam_length of 4 is more than the 3 cells"):
        Cleanup(facing=True, vision=2, beam_length=4)
    with pytest.raises(ConfigError, match="agents interact by a beam"):
        PrisonersDilemma(facing=False)


def test_apples_grow_by_how_many_are_near_and_never_where_none_is():
    world = CommonsHarvest(64, 1, num_agents=1, growth=[0, 1.0])
    world.reset()
    apples = world.everywhere(world._apples)
    world.grid[1][apples[:, 13:]] = 0  # all patches but the first
    world.grid[1][apples[:, 1]] = 0
    assert world.apples().sum(axis=1).tolist() == [12] * 64
    world.transition()
    assert world.apples().sum(axis=1).tolist() == [13] * 64
    few = CommonsHarvest(64, 1, num_agents=1, growth=[0, 0, 0, 0.5], zap_cost=2)
    few.reset()
    few.grid[1][few.everywhere(few._apples)] = 0
    few.grid[1][few.everywhere(few._apples[[0, 1]])] = few.code["apple"]
    few.transition()
    assert (few.apples().sum(axis=1) == 2).all()  # no cell has three near it
    assert do(few, "zap") == [-2]


def test_the_closed_map_has_one_door_to_each_patch():
    world = CommonsHarvest(1, 1, map="closed")
    world.reset()
    rows = [line[1:-1] for line in str(world).replace("A", ".").splitlines()[1:-1]]
    assert rows[0] == rows[-1] == "#" * 21
    assert rows[6] == rows[10] == "###.###" * 3
    assert str(world).count("o") == 78


@pytest.fixture
def dilemma():
    world = PrisonersDilemma(2, 1, num_agents=2, timeout=4)
    world.reset()
    place(world, (5, 5, UP), (3, 5, DOWN))
    return world


@pytest.mark.parametrize(
    ("one", "other", "payoffs"),
    [
        ((2, 0), (1, 0), [3, 3]),
        ((1, 0), (0, 3), [0, 5]),
        ((0, 1), (0, 1), [1, 1]),
        ((1, 1), (1, 0), [4, 1.5]),
    ],
)
def test_two_who_meet_get_what_their_stones_say_and_drop_them(dilemma, one, other, payoffs):
    for agent, (green, red) in enumerate([one, other]):
        dilemma.green[agent], dilemma.red[agent] = green, red
    assert do(dilemma, "interact", "forward") == payoffs
    assert not dilemma.ready.any()
    assert not dilemma.can_act.any()
    assert dilemma.metrics()["meetings"].tolist() == [[1, 1], [1, 1]]


def test_nobody_meets_one_who_has_no_stone_and_only_the_owner_sees_which_it_has(dilemma):
    dilemma.put("red", here(dilemma, 4, 5))
    assert do(dilemma, "forward", "interact") == [0, 0]
    assert dilemma.can_act.all()
    own, others = (dilemma.shows(name) for name in ("mostly red", "ready"))
    assert own[dilemma.pov(0)[0]].sum() == 1
    assert own[dilemma.pov(1)[0]].sum() == 0
    assert others[dilemma.pov(1)[0]].sum() == 1


@pytest.mark.parametrize("world", ALL)
def test_sequential_and_parallel_actions_are_the_same_where_agents_face_somewhere(make, world):
    options = ["agents=[ppo]", "turn_order=random", "world_settings.facing=true"]
    if world == "commons_harvest":
        options.append("world_settings.height=17")
    plain = make(*options, "parallel.enabled=false", world=world)
    assert same(trajectory(plain, 40), trajectory(make(*options, world=world), 40))


@pytest.mark.parametrize("world", ALL)
@pytest.mark.parametrize("order", ["sequential", "random"])
def test_a_copy_lives_the_same_life_where_agents_face_somewhere(make, world, order):
    more = ["world_settings.facing=true", f"turn_order={order}"]
    if world == "commons_harvest":
        more.append("world_settings.height=17")
    few, many = (trajectory(make(*more, f"copies={n}", world=world), 40) for n in (1, 9))
    assert same(few, [[array[:, :1] for array in turn] for turn in many])


@pytest.mark.parametrize("name", [name for name in ALL if issubclass(WORLDS[name], ZapWorld)])
def test_peace_is_lost_where_agents_zap(name):
    world = WORLDS[name](4, 1, facing=True)
    agents = [Agent(i, RandomModel(len(world.actions), 4, seed=i)) for i in range(world.num_agents)]
    (result,) = Environment(world, agents, load_world_config(name)).run_experiment(1)
    assert result.measures["peace"] < world.num_agents
    assert sum(result.by_agent["zaps"].values()) > 0


def test_pictures_show_where_agents_face_their_beams_and_what_is_what(zapping):
    do(zapping, "zap", "stay", "stay", "turn right")
    left, top = 5 * CELL + CELL // 2, 7 * CELL + CELL // 2
    assert picture(zapping).getpixel((left, top)) == (255, 225, 77)
    text = colored_text(zapping).plain
    assert "0^" in text
    assert "3>" in text
    assert "1" not in text  # it is timed out
    film = frame(zapping)
    assert film.width == 12 * CELL
    assert film.height > 12 * CELL
    assert "dirt" in legend_text(zapping).plain
    assert keys_of(zapping).startswith("keys: w forward, s backward, a left, d right, e clean")
