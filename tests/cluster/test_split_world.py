"""A world whose copies play on several machines has the numbers of one process."""

import pytest

from tests.worlds.test_split_world import assert_equal, run

RAY = ["parallel.backend=ray", "parallel.world_workers=2"]


@pytest.mark.parametrize("world", ["cleanup", "pettingzoo:mpe2.simple_spread_v3"])
@pytest.mark.usefixtures("own_cluster")
def test_a_world_on_a_cluster_has_the_numbers_of_one_process(world):
    assert_equal(run(world), run(world, *RAY))


@pytest.mark.usefixtures("own_cluster")
def test_an_actor_that_is_killed_changes_nothing(caplog):
    import ray

    def kill(environment):
        if environment.turn == 18:
            ray.kill(environment.world.workers[1].actor)

    assert_equal(run("tag"), run("tag", *RAY, on_turn=kill))
    assert "was lost with its node, or killed; another one takes its place" in caplog.text
