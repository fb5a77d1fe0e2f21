"""A network as ONNX computes what it computes in PyTorch, and is read back."""

import numpy as np
import pytest

import keisei
from keisei.config_schema import ModelConfig
from keisei.core.neural_network import build_network
from keisei.core.policy import evaluate
from keisei.onnx_format import read_onnx, write_onnx
from keisei.shogi import ShogiGame, VectorShogi
from tests.processes import run_keisei

SHAPES = [
    {"depth": 1, "planes": "attack60"},
    {"depth": 1, "width": 16, "se_ratio": 0.25},
    {"depth": 0, "policy_head": "flat"},
]


def some_positions(count=64):
    games = VectorShogi(num_games=count, seed=1)
    for _ in range(60):
        games.step(games.random_actions())
    return games.positions


def assert_same(one, other):
    np.testing.assert_allclose(one.log_probs, other.log_probs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_kind_of_network_computes_the_same_as_onnx(shape, tmp_path):
    import torch

    torch.manual_seed(1)
    network = build_network(ModelConfig(**shape)).eval()
    for weights in network.parameters():  # fresh ones have layers of zeros
        torch.nn.init.normal_(weights, std=0.05)
    write_onnx(network, {"known": [1.5, "two"]}, tmp_path / "network.onnx")
    policy, facts = read_onnx(tmp_path / "network.onnx")
    for positions in (some_positions(), some_positions(1)):
        assert_same(policy(positions), evaluate(network, positions))
    assert facts == {"known": [1.5, "two"]}


def test_the_command_writes_what_load_reads_and_players_play(tmp_path):
    name = "hour-5247503"  # it plays in float32, as ONNX does
    done = run_keisei("export", name, "-o", "net.onnx", "--format", "onnx", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    net, original = keisei.load(tmp_path / "net.onnx"), keisei.load(name)
    assert_same(net.evaluate(some_positions()), original.evaluate(some_positions()))
    assert net.steps == original.steps
    one, other = (each.analyse(ShogiGame(), nodes=20) for each in (net, original))
    assert one.move == other.move
    assert one.win_chance == pytest.approx(other.win_chance, abs=1e-4)  # by the same curve
    assert keisei.play_match(net, "random", games=2).first == "net policy"


@pytest.mark.parametrize("data", [b"", b"rubbish" * 100])
def test_a_file_that_is_not_onnx_is_one_clear_sentence(data, tmp_path):
    (tmp_path / "broken.onnx").write_bytes(data)
    with pytest.raises(keisei.KeiseiError, match=r"broken\.onnx has no network"):
        keisei.load(tmp_path / "broken.onnx")


def test_the_format_and_the_end_of_the_files_name_must_agree(tmp_path):
    done = run_keisei("export", "shipped", "-o", "net.pt", "--format", "onnx", cwd=tmp_path)
    assert done.returncode == 2
    assert "net.pt must end in" in done.stderr
