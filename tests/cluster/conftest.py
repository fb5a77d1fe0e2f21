import contextlib
import os
import shutil
import signal
import tempfile

import pytest

from keisei.processes.ray_cluster import cluster, import_ray

# Ray notices a dead node after some missed beats; with its own settings that takes 16 seconds.
QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
STORE = 80 * 2**20


@pytest.fixture(scope="package", autouse=True)
def own_folder():
    """Ray notes here what may be joined: tests of another clone have a folder of their own."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # short, or Ray's sockets have no name
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
def own_cluster():
    """A cluster of this machine alone, which the files that come after `test_nodes.py` share."""
    with cluster("auto", STORE):
        yield


@contextlib.contextmanager
def nodes(*cpus):
    """A cluster of several nodes, each with its own raylet and object store."""
    import_ray()
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": cpus[0],
            "object_store_memory": STORE,
            "include_dashboard": False,
            "no_monitor": True,  # it would only add and end machines
            "_system_config": QUICK,
        },
    )
    try:
        for count in cpus[1:]:
            add_node(made, count)
        yield made
    finally:
        made.shutdown()


def add_node(made, cpus):
    return made.add_node(num_cpus=cpus, object_store_memory=STORE)


def kill_raylet(node):
    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
