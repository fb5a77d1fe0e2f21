"""The rules of the worlds."""

import numpy as np
import pytest
from PIL import ImageColor

from keisei.errors import KeiseiError
from keisei.settings import ConfigError
from keisei.worlds import WORLDS, Entity, World, make_environment
from keisei.worlds.cleanup import Cleanup
from keisei.worlds.drawing import AGENT_COLORS, CELL, colored_text, picture
from keisei.worlds.grid import WAY_STEPS
from keisei.worlds.stag_hunt import StagHunt
from keisei.worlds.tag import Tag
from keisei.worlds.treasure_hunt import VALUES, TreasureHunt

SMALL = {"height": 7, "width": 7, "vision": 2}


def started(kind, copies=2, **settings):
    world = kind(copies, 1, **{**SMALL, **settings})
    world.reset()
    return world


def stand(world, agent, row, column):
    """Put an agent there, in all copies."""
    world.grid[1][world.positions[agent]] = 0
    world.positions[agent] = world.first_cell + world.cell(row, column)
    world.grid[1][world.positions[agent]] = world.bodies[agent]


def clear(world):
    world.grid[1][:] = 0
    for agent in range(world.num_agents):
        stand(world, agent, 1, agent + 1)


def here(world, row, column):
    return world.first_cell + world.cell(row, column)


def do(world, *names):
    """One action of each agent, the same in all copies; returns the rewards in the first copy."""
    world.rewards[:] = 0
    actions = np.array([[world.actions.index(name)] * world.copies for name in names])
    rewards, *_ = world.step(actions)
    assert (rewards == rewards[:, :1]).all()
    return rewards[:, 0].tolist()


@pytest.mark.parametrize("name", WORLDS)
def test_nobody_leaves_the_walls_and_no_two_stand_in_one_cell(name):
    world = WORLDS[name](4, 3)
    world.reset()
    rng = np.random.default_rng(1)
    inside = set(world.everywhere(world.inside).reshape(-1).tolist())
    for _ in range(world.max_turns):
        world.begin_turn()
        _rewards, dones, truncated = world.step(
            rng.integers(0, len(world.actions), (world.num_agents, world.copies))
        )
        places = world.positions[world.can_act].tolist()
        assert set(places) <= inside
        assert len(set(places)) == len(places)
        bodies = world.bodies + world._face * world.facing  # a number for each way to face
        assert (world.grid[1][world.positions] == bodies)[world.can_act].all()
    assert truncated.all()
    assert not dones.any()


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_that_was_kept_goes_on_exactly(name):
    def live(world, turns):
        rng = np.random.default_rng(2)
        for _ in range(turns):
            world.begin_turn()
            world.step(rng.integers(0, len(world.actions), (world.num_agents, world.copies)))
        return world.pov()

    first, second = WORLDS[name](3, 1), WORLDS[name](3, 2)
    first.reset()
    live(first, 10)
    second.load_state_dict(first.state_dict())
    assert np.array_equal(live(first, 20), live(second, 20))


@pytest.mark.parametrize(("thing", "value"), VALUES.items())
def test_treasure_is_got_by_walking_onto_it(thing, value):
    world = started(TreasureHunt)
    clear(world)
    world.put(thing, here(world, 2, 1))
    assert do(world, "down", "up") == [value, 0]
    assert (world.look(here(world, 2, 1)) == world.code["agent"]).all()
    assert do(world, "up", "up") == [0, 0]
    assert (world.look(here(world, 2, 1)) == 0).all()


def test_treasure_comes_again():
    world = started(TreasureHunt, start_things=0, spawn_chance=1.0)
    for _ in range(30):
        world.begin_turn()
    assert sum(str(world).count(letter) for letter in "*o+x") > 5


def test_an_agent_sees_the_window_around_it():
    world = started(TreasureHunt, copies=1)
    clear(world)
    stand(world, 0, 3, 3)
    stand(world, 1, 2, 3)
    world.put("gem", here(world, 5, 5))
    window = world.pov(0)[0].reshape(5, 5)
    assert window[2, 2] == window[1, 2] == world.code["agent"]
    assert window[4, 4] == world.code["gem"]
    planes = world.views[0].encode(window.reshape(1, 25)).reshape(5, 5, len(world.planes))
    assert planes[4, 4].tolist() == [float(name == "gem") for name in world.planes]


def test_apples_grow_only_while_the_river_is_clean_enough():
    world = started(Cleanup, height=9, width=12, dirt_chance=0.0)
    for _ in range(50):
        world.begin_turn()
    assert "o" not in str(world)
    world.put("river", world.everywhere(world._river))
    for _ in range(20):
        world.begin_turn()
    assert "o" in str(world)


def test_cleaning_cleans_around_and_is_worth_nothing():
    world = started(Cleanup, height=9, width=12, num_agents=1)
    clear(world)
    stand(world, 0, 3, 2)
    world.put("dirt", world.everywhere(world._river))
    assert do(world, "clean") == [0]
    assert world.dirt_share()[0] == 1 - 9 / len(world._river)


def test_an_apple_is_worth_one():
    world = started(Cleanup, height=9, width=12, num_agents=1)
    clear(world)
    world.put("apple", here(world, 2, 1))
    assert do(world, "down") == [1]


@pytest.mark.parametrize(
    ("share", "rewards"), [(0, [1, 0, 0, 0]), (0.5, [0.625] + [0.125] * 3), (1, [0.25] * 4)]
)
def test_what_is_shared_is_divided_among_all(share, rewards):
    world = started(Cleanup, height=9, width=12, num_agents=4, shared_reward=share)
    clear(world)
    world.put("apple", here(world, 2, 1))
    assert do(world, "down", "stay", "stay", "stay") == rewards


def test_who_is_tagged_loses_what_the_tagger_gets_and_is_it_after_a_pause():
    world = started(Tag, pillars=0, pause=2, num_agents=3)
    clear(world)
    world.it[:] = world.numbers == 0
    world._show_it()
    assert do(world, "right", "stay", "stay") == [1, -1, 0]
    assert world.it.tolist() == [[False] * 2, [True] * 2, [False] * 2]
    world.begin_turn()
    assert do(world, "stay", "left", "stay") == [0, 0, 0]  # it must pause
    world.begin_turn()
    assert do(world, "stay", "left", "stay") == [-1, 1, 0]


@pytest.mark.parametrize("pause", [0, 1, 2, 5])
def test_a_pause_counts_the_turn_of_the_tag(pause):
    world = started(Tag, pillars=0, pause=pause, num_agents=2)
    clear(world)
    world.it[:] = world.numbers == 0
    world._show_it()
    world.begin_turn()
    still = 0
    got = do(world, "right", "left")  # the second acts in the same turn, after it was tagged
    while got != ([0, 0] if pause == 0 else [-1, 1]):
        still += 1
        world.begin_turn()
        got = do(world, "stay", "left")
    assert still == pause


def test_a_runner_cannot_tag():
    world = started(Tag, pillars=0, num_agents=3)
    clear(world)
    world.it[:] = world.numbers == 2
    world._show_it()
    assert do(world, "right", "left", "stay") == [0, 0, 0]


@pytest.fixture
def stag_hunt():
    world = started(StagHunt, num_agents=3, stags=1, hares=1)
    world.grid[1][:] = 0
    for agent, place in enumerate([(2, 2), (3, 3), (5, 1)]):
        stand(world, agent, *place)
    world.prey[0], world.prey[1] = here(world, 2, 3), here(world, 5, 2)
    world.put("stag", world.prey[0])
    world.put("hare", world.prey[1])
    world.transition()
    return world


def test_a_stag_falls_only_to_two_who_hunt_it_in_the_same_turn(stag_hunt):
    assert do(stag_hunt, "hunt", "stay", "stay") == [0, 0, 0]
    stag_hunt.begin_turn()
    assert do(stag_hunt, "stay", "hunt", "stay") == [0, 0, 0]
    stag_hunt.begin_turn()
    assert do(stag_hunt, "hunt", "hunt", "stay") == [5, 5, 0]


def test_a_stag_that_stays_is_worth_its_reward_to_each_of_two_and_not_to_a_third(stag_hunt):
    stag_hunt._next[0] = stag_hunt.prey[0]  # taken: by the stag itself
    stand(stag_hunt, 2, 1, 3)
    assert do(stag_hunt, "hunt", "hunt", "hunt") == [5, 5, 0]


def test_a_hare_is_caught_alone(stag_hunt):
    assert do(stag_hunt, "stay", "stay", "hunt") == [0, 0, 0.5]


def test_unknown_settings_and_too_many_things_are_refused_in_one_line():
    with pytest.raises(ConfigError, match="treasure_hunt: gold"):
        TreasureHunt(gold=3)
    with pytest.raises(ConfigError, match="do not fit on 25 cells"):
        TreasureHunt(**SMALL, start_things=26).reset()


def test_a_world_with_more_entities_than_a_byte_can_tell_apart_is_refused():
    class Crowded(World):
        name = "crowded"
        entities = tuple(Entity(f"{n}", "x", layer=n % 2) for n in range(40))
        actions = ("up",)

    with pytest.raises(ConfigError, match="more than 256"):
        Crowded()


def test_a_river_and_an_orchard_that_touch_fit_and_both_are_whole():
    world = started(Cleanup, height=9, width=12, river_width=4, orchard_width=6)
    first_row = str(world).splitlines()[1]
    assert set(first_row[1:5]) <= set("~%")
    assert str(world).count(",") + str(world).count("A") >= 6 * 7
    with pytest.raises(ConfigError, match=r"4 columns of river and 7 of orchard .* in 10"):
        Cleanup(height=9, width=12, river_width=4, orchard_width=7)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("copies=99", "the world already has 2"), ("world_settings.height=9", "world_settings")],
)
def test_settings_that_a_ready_world_cannot_follow_are_refused(setting, said):
    with pytest.raises(KeiseiError, match=said):
        make_environment(Tag(copies=2), [setting])
    make_environment(Tag(copies=2), ["copies=2", "seed=3"]).close()  # the seed is the agents'


@pytest.mark.parametrize("name", ["copies", "seed"])
def test_what_belongs_to_the_run_is_no_setting_of_its_world(name):
    with pytest.raises(ConfigError, match=f"world_settings.{name}: .* set {name} instead"):
        make_environment("tag", [f"world_settings.{name}=3"])


def test_a_setting_that_a_world_refuses_is_named_with_its_value_and_where_all_are_listed():
    with pytest.raises(ConfigError, match=r"world tag: pause: .*, not -1; gold: .* config tag"):
        Tag(pause=-1, gold=3)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(("order", "facing"), [("simultaneous", False), ("random", True)])
def test_agents_that_are_distinct_see_who_stands_where(name, order, facing):
    count = 2 if name in ("coins", "cleanup", "tag") else 4
    size = {"height": 17, "width": 9} if name == "commons_harvest" else {"height": 9, "width": 11}
    facing = facing or name == "prisoners_dilemma"
    settings = {"num_agents": count, "facing": facing, **size}
    world, plain = (WORLDS[name](3, 1, distinct_agents=d, **settings) for d in (True, False))
    rng = np.random.default_rng(1)
    known = [world.planes.index(plane) for plane in plain.planes]
    for _ in range(20):
        for one in (world, plain):
            one.begin_turn()
        actions = rng.integers(0, len(world.actions), (count, 3))
        for one in (world, plain):
            one.step(actions, one.draw_order() if order == "random" else None)
        planes = world.views[0].encode(world.pov()).reshape(count, 3, 9, 9, len(world.planes))
        same = plain.views[0].encode(plain.pov()).reshape(count, 3, 9, 9, len(plain.planes))
        assert np.array_equal(planes[..., known], same)  # the same world
        for copy, agent, other in np.ndindex(3, count, count):
            row, column = in_window(world, copy, agent, other)
            shown = planes[agent, copy, ..., world.planes.index(f"agent {other}")]
            inside = 0 <= row < 9 and 0 <= column < 9 and world.can_act[[agent, other], copy].all()
            assert shown.sum() == inside
            assert not inside or shown[row, column] == 1


def in_window(world, copy, agent, other):
    """Where an agent has another one in its window: row, column."""
    here, there = (world.places(copy)[number] for number in (agent, other))
    way = world.facing[agent, copy]
    forward, right = (np.array(WAY_STEPS[one % 4]) for one in (way, way + 1))
    apart = np.subtract(there, here)
    return world.rim - apart @ forward, world.settings.vision + apart @ right


def test_too_many_distinct_agents_are_refused():
    with pytest.raises(ConfigError, match="fewer agents if they are distinct"):
        TreasureHunt(distinct_agents=True, num_agents=30)


def test_every_agent_has_its_colour_in_pictures_whatever_its_body():
    world = started(Tag, num_agents=4, pillars=0)
    image = picture(world)
    (agent,) = np.flatnonzero(world.it[:, 0])
    row, column = world.places(0)[agent]
    left, top = column * CELL, row * CELL
    colours = image.crop((left, top, left + CELL, top + CELL)).getcolors()
    fill = ImageColor.getrgb(AGENT_COLORS[agent])
    rim = ImageColor.getrgb(next(e.color for e in world.entities if e.name == "it"))
    assert {fill, rim} <= {colour for _, colour in colours}
    assert f"{agent}I" in colored_text(world).plain
