"""A tiny checkpoint, and the engine as a process of its own."""

import sys

import pytest

from keisei.config_schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.runs.checkpoint import save_checkpoint
from keisei.settings import to_yaml
from keisei.training.progress import Progress
from keisei.usi.client import UsiClient


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """An untrained network of the smallest kind, as a run would save it."""
    config = AppConfig.model_validate({"model": {"depth": 1, "width": 16}})
    state = {
        "agent": PPOAgent(config, "cpu").state_dict(),
        "progress": Progress(1).state_dict(),
        "config": to_yaml(config),
    }
    path = tmp_path_factory.mktemp("models") / "tiny.pt"
    save_checkpoint(path, state)
    return path


@pytest.fixture(scope="session")
def command(checkpoint):
    return [sys.executable, "-m", "keisei", "usi", "--model", str(checkpoint)]


@pytest.fixture(scope="session")
def engine_process(command):
    """One process for all tests: each start imports PyTorch."""
    with UsiClient(command) as client:
        yield client


@pytest.fixture
def engine(engine_process, request):
    """The engine, with nothing left to say of what an earlier test had asked it."""
    for line in ("stop", f"after:{request.node.name.split('[')[0]}"):
        engine_process.send(line)
    while "after:" not in engine_process.wait_for("info", 60):
        pass
    for line in ("setoption name USI_Ponder value false", "usinewgame"):
        engine_process.send(line)
    return engine_process


@pytest.fixture
def session(engine):
    """Sends lines, waits for the answer of each `go`, and gives all that was said."""

    def run(*lines):
        said = []
        for line in (*lines, "isready"):
            engine.send(line)
            words = line.split()
            if words[0] in ("go", "isready"):
                answer = {"isready": "readyok"}.get(words[0], "bestmove")
                answer = "checkmate" if "mate" in words else answer
                last = engine.wait_for(answer, 60)
                said += [*engine.passed, last]
        return said

    return run
