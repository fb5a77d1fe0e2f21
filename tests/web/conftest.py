"""Small runs, trained in a few seconds, and a real server that shows them."""

import shutil
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from keisei.config_schema import load_config
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.training.callbacks import RecordMetrics
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager
from keisei.web.app import create_app
from keisei.web.server import uvicorn_config
from keisei.worlds.training import start_world_training
from tests.training.conftest import TINY as TRAINING
from tests.worlds.test_run import TINY as WORLD

TINY = [
    *TRAINING,
    "training.total_timesteps=1024",
    "evaluation.games=2",
    "evaluation.final_games=2",
    "logging.tensorboard=false",
]
TINY_WORLD = [*WORLD, "epochs=4", "parallel.enabled=false"]


def trainer_of(root, name, *overrides, callbacks=None):
    """The trainer of a new small run."""
    config = load_config(overrides=[*TINY, *overrides])
    run = Run.create(root, name, to_yaml(config))
    return Trainer(config, run, callbacks or [RecordMetrics()])


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory):
    """A folder with a finished run of Shogi and one of a world; not to be changed."""
    root = tmp_path_factory.mktemp("web") / "runs"
    TrainingLoopManager(trainer_of(root, "first")).run()
    overrides = [*TINY_WORLD, f"runs_dir={root}"]
    start_world_training("treasure_hunt", None, overrides, "hunt", None, None)
    return root


@pytest.fixture
def runs(trained_runs, tmp_path):
    """The same, to be changed."""
    return shutil.copytree(trained_runs, tmp_path / "runs")


@contextmanager
def serving(runs_dir, access=None):
    """A server in a thread; gives an httpx client of it."""
    app = create_app(runs_dir, access)
    server = uvicorn.Server(uvicorn_config(app))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        app.state.server.close()
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server did not end"


@pytest.fixture(scope="session")
def client(trained_runs):
    """A client of a server that shows the trained runs."""
    with serving(trained_runs) as one:
        yield one


def rows_of(client):
    """The list by name, once all was read: on a busy machine, one look has no time for all."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        rows = client.get("/api/runs").json()["runs"]
        if all(row["started"] or row["error"] for row in rows):
            break
    return {row["name"]: row for row in rows}
