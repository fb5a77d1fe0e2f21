"""Several nodes on this machine, each with its own raylet and object store."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time

import psutil
import pytest

from keisei.processes.ray_cluster import cluster, import_ray
from keisei.training.parallel import make_manager
from tests.parallel.conftest import SMALL, are_gone, make
from tests.processes import STDOUT, Process

from .conftest import STORE, add_node, kill_raylet, nodes

FOREVER = ["-o", "training.total_timesteps=10000000"]
SHORT = [f"--override={setting}" for setting in SMALL if "num_workers" not in setting]


def workers_by_node(manager):
    return {node["node"]: node["workers"] for node in manager.get_statistics()["cluster"]["nodes"]}


def collect_until(manager, is_so, seconds=120):
    """Train on, in a way, until something is so; the rollouts that came meanwhile."""
    count, deadline = 0, time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came true"
        count += len(manager.collect_experiences())
    return count


def test_a_lost_node_does_not_stop_the_rest_and_a_new_one_is_used():
    with nodes(1, 1) as made:
        config, agent = make(
            "backend=ray", f"ray_address={made.address}", "num_workers=2", "worker_timeout=10"
        )
        with make_manager(config, agent) as manager:
            head, second = made.head_node.node_id, made.worker_nodes.copy().pop()
            assert len(manager.collect_experiences()) == 2
            assert workers_by_node(manager) == {head: 1, second.node_id: 1}
            kill_raylet(second)
            count = 2 + collect_until(manager, lambda: workers_by_node(manager) == {head: 1})
            rollouts = manager.collect_experiences()
            assert sum(rollout.num_steps for rollout in rollouts) == 2 * 64
            third = add_node(made, 1)
            both = {head: 1, third.node_id: 1}
            count += 2 + collect_until(manager, lambda: workers_by_node(manager) == both)
            statistics = manager.get_statistics()
            assert statistics["total_rollouts"] == count  # every finished one counted once
            assert statistics["dropped_rollouts"] <= 1


def test_with_elastic_a_node_that_joins_plays_although_nobody_counted_on_it():
    with nodes(2) as made:
        config, agent = make("backend=ray", f"ray_address={made.address}", "elastic=true")
        with make_manager(config, agent) as manager:
            assert len(manager.collect_experiences()) == 1
            add_node(made, 1)
            collect_until(manager, lambda: len(manager.get_statistics()["workers"]) == 2)
            assert len(manager.collect_experiences()) == 2


def start(arguments, tmp_path):
    folder = ["-o", f"logging.runs_dir={tmp_path}", "--name", "run", "-o", "display.live=never"]
    with (tmp_path / "log").open("w") as log:
        return Process(["train", *SHORT, *folder, *arguments], stdout=log, stderr=STDOUT)


def metrics(tmp_path, query):
    with contextlib.closing(sqlite3.connect(tmp_path / "run" / "metrics.sqlite")) as db:
        return db.execute(query).fetchall()


def until(look, seconds=120):
    """What it sees as soon as it sees something, where there is no event to await."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)
    return seen


def await_update(process, tmp_path):
    """Wait for the run's first update."""

    def look():
        assert process.poll() is None, (tmp_path / "log").read_text()
        with contextlib.suppress(sqlite3.Error):
            return metrics(tmp_path, "SELECT 1 FROM metrics WHERE name = 'policy_loss'")

    until(look)


def workers_of(raylet):
    """Ray gives a process its name; for a moment, as it changes it, it has none."""
    found = []
    for one in raylet.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "RayWorker" in " ".join(one.cmdline()):
                found.append(one.pid)
    return found


def test_training_goes_on_when_a_node_is_killed(tmp_path):
    with nodes(2, 1) as made:
        limit = ["-o", "training.parallel.worker_timeout=10", "-o", "evaluation.games=2"]
        process = start(["--ray", made.address, *FOREVER, *limit], tmp_path)
        await_update(process, tmp_path)
        restarts = "FROM metrics WHERE name = 'restarts'"
        ((before,),) = metrics(tmp_path, f"SELECT MAX(value) {restarts}")
        kill_raylet(made.worker_nodes.copy().pop())
        lost = f"SELECT MIN(step) {restarts} AND value > {before} HAVING MIN(step) > 0"
        ((lost_at,),) = until(lambda: metrics(tmp_path, lost))
        later = f"SELECT 1 FROM metrics WHERE name = 'policy_loss' AND step > {lost_at} + 1000"
        until(lambda: metrics(tmp_path, later))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0, (tmp_path / "log").read_text()
    assert "Everything is saved" in (tmp_path / "log").read_text()


def test_clusters_of_their_own_live_side_by_side_and_end_with_those_who_made_them(tmp_path):
    import_ray()
    from ray._private.utils import write_ray_address

    write_ray_address("127.0.0.1:1")  # noted by a cluster that was killed since
    with cluster("auto", STORE):
        mine = [one for one in psutil.Process().children() if "raylet" in one.name()]
        assert mine
        process = start(["--ray", "auto", *FOREVER], tmp_path)
        await_update(process, tmp_path)
        started = psutil.Process(process.pid).children(recursive=True)
        assert [one.name() for one in started].count("raylet") == 1  # it did not join mine
    assert not psutil.wait_procs(mine, timeout=30)[1]
    assert process.poll() is None
    process.kill()
    process.wait(timeout=10)
    assert are_gone([one.pid for one in started], seconds=30)


def test_a_killed_run_leaves_a_cluster_alone_that_it_only_joined(tmp_path):
    with nodes(2) as made:
        raylet = psutil.Process(made.head_node.all_processes["raylet"][0].process.pid)
        process = start(["--ray", made.address, *FOREVER], tmp_path)
        await_update(process, tmp_path)
        workers = until(lambda: workers_of(raylet))
        assert len(workers) == 1
        process.kill()
        process.wait(timeout=10)
        assert are_gone(workers, seconds=30)
        assert raylet.is_running()
        config, agent = make("backend=ray", f"ray_address={made.address}")
        with make_manager(config, agent) as manager:
            assert len(manager.collect_experiences()) == 1
        assert raylet.is_running()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("nowhere", "'nowhere' is not an address of a Ray cluster"),
        ("ray://127.0.0.1:10001", "start the training on a machine of the cluster"),
    ],
)
def test_a_wrong_address_is_one_readable_line(tmp_path, address, says):
    process = start(["--ray", address], tmp_path)
    assert process.wait(timeout=60) == 2
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.startswith("keisei: ")
    assert says in line
    assert not (tmp_path / "run").exists()


def test_without_ray_one_line_says_what_to_install(tmp_path):
    hidden = "import sys; sys.modules['ray'] = None; from keisei.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", hidden, "train", "--ray", "auto"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2
    assert result.stderr == "keisei: Ray is not installed: pip install 'ray==2.60.*' grpcio\n"
