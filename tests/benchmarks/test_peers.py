"""That the task which peers are measured on is the game itself, and the network Keisei's own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from keisei.shogi import ShogiGame
from keisei.shogi.actions import NUM_ACTIONS, PolicyOutputMapper

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "peers"))

import common
import race
import run
import worlds

# Black mates with a gold in front of the king, which a pawn guards.
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def test_the_environment_passes_gymnasiums_own_checker_with_legal_moves():
    class LegalMoves(common.ShogiEnv):
        """The checker draws any action: here it is the legal one that comes next."""

        def step(self, action):
            legal = np.flatnonzero(self.action_masks())
            return super().step(legal[action % len(legal)])

    check_env(LegalMoves(), skip_render_check=True)


def test_the_mask_marks_the_legal_actions_and_the_planes_are_the_games():
    env, game = common.ShogiEnv(), ShogiGame()
    seen, _ = env.reset()
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert np.flatnonzero(seen["action_mask"]).tolist() == sorted(game.legal_actions())
        assert np.array_equal(seen["observations"], game.planes())
        action = rng.choice(game.legal_actions())
        game.step(int(action))
        seen, reward, decided, cut, _ = env.step(action)
        assert (decided or cut) == (game.outcome is not None)
        if game.outcome:
            break
        assert reward == 0


@pytest.mark.parametrize(("move", "reward"), [("G*5b", 1.0), ("G*1i", 0.0)])
def test_the_reward_is_the_movers(move, reward):
    env = common.ShogiEnv()
    env.reset()
    env._game.reset(MATE_IN_ONE)
    action = PolicyOutputMapper().usi_to_action(move, "black")
    _, got, decided, cut, _ = env.step(action)
    assert (got, decided, cut) == (reward, reward == 1.0, False)


@pytest.mark.parametrize("material", [0.0, common.MATERIAL])
def test_games_stepped_together_show_what_single_environments_show(material):
    games = common.ShogiGames(3, material_reward=material)
    envs = [common.ShogiEnv(material) for _ in range(3)]
    seen = [env.reset()[0] for env in envs]
    rng = np.random.default_rng(1)
    for _ in range(60):
        planes, masks = games.seen()
        for row, one in enumerate(seen):
            assert np.array_equal(planes[row], one["observations"])
            assert np.array_equal(masks[row], one["action_mask"])
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        rewards, decided, cut = games.step(actions)
        for row, env in enumerate(envs):
            seen[row], *rest, _ = env.step(actions[row])
            assert rest == [pytest.approx(rewards[row]), decided[row], cut[row]]
            if decided[row] or cut[row]:
                seen[row], _ = env.reset()


def test_all_logits_are_the_scores_of_keiseis_own_head():
    network = common.AllLogits()
    planes = torch.rand(2, *common.PLANES.shape)
    with torch.inference_mode():
        logits, values = network(planes)
        policy, own_values = network.tower(planes)
        rows = torch.arange(2).repeat_interleave(NUM_ACTIONS)
        scores = network.tower.scores(policy, rows, torch.arange(NUM_ACTIONS).repeat(2))
    torch.testing.assert_close(logits, scores.view(2, NUM_ACTIONS))
    assert torch.equal(values, own_values)


def test_in_bfloat16_peers_get_nearly_the_same_logits_and_values_in_float32(monkeypatch):
    network, planes = common.AllLogits(), torch.rand(2, *common.PLANES.shape)
    with torch.inference_mode():
        exact = network(planes)
        monkeypatch.setattr(common, "PRECISION", "bfloat16")
        rounded = network(planes)
    assert not torch.equal(rounded[0], exact[0])
    torch.testing.assert_close(rounded, exact, atol=0.02, rtol=0.05)


def test_a_contender_that_fails_is_reported_and_the_others_go_on(tmp_path):
    good = run.Contender("Keisei", "keisei_env.py", seconds=0.1)
    bad = run.Contender("a peer that is not there", "keisei_env.py", "nowhere")
    for contender in (bad, good):
        contender.measure(timeout=120)
    assert "make peers" in bad.error
    table = run.markdown([good, bad])
    assert "| Keisei |" in table
    assert "failed: no environment nowhere" in table
    run.draw([good, bad], tmp_path / "peers.png")
    run.write([good, bad], 1, [0.0], tmp_path / "results.json")
    assert (tmp_path / "peers.png").stat().st_size > 0


def test_a_race_ends_at_its_goal_and_says_what_went_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(race, "GAMES", 2)
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    folders = f"import sys; sys.path.append({str(race.HERE)!r}); import common"
    race_on = "common.race(lambda: 7, common.AllLogits(), sys.argv[-1])"
    good.write_text(f"{folders}; common.SHOW_EVERY = 0; print('hello'); {race_on}")
    bad.write_text("raise SystemExit('it does not work')")
    results = {
        "good": race.race("", [str(good)], {"random": 0.0}, 60),
        "slow": race.race("", [str(good)], {"random": 1.1}, 0),
        "bad": race.race("", [str(bad)], {"random": 0.0}, 60),
    }
    assert results["good"]["reached"]["random"]["steps"] == 7
    table = race.markdown(results, {"random": 0.95})
    assert "| good |" in table
    assert "7 moves" in table
    assert "| slow | not within" in table
    assert "| bad | failed: it does not work |" in table


def test_a_race_that_is_ended_takes_its_contender_with_it(tmp_path):
    os.mkfifo(tmp_path / "pid")
    contender = tmp_path / "contender.py"
    contender.write_text(
        f"import os, sys; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); "
        "sys.stdin.readline()"
    )
    start = f"race.end_with_contenders(); race.race('', [{str(contender)!r}], {{}}, 60)"
    code = f"import sys; sys.path.append({str(race.HERE)!r}); import race; {start}"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        pid = int((tmp_path / "pid").read_text())
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not psutil.pid_exists(pid)


def test_a_contender_is_ended_also_by_a_signal_that_comes_while_it_starts(monkeypatch):
    started, popen = [], subprocess.Popen

    def start_and_ask(*arguments, **options):
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)  # before the caller knows the process
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start_and_ask)
    before = signal.getsignal(signal.SIGTERM)
    try:
        run.end_with_contenders()
        with pytest.raises(SystemExit), run.session(["sleep", "600"]):
            pytest.fail("it went on")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert started[0].returncode == -signal.SIGKILL


def test_treasure_hunt_is_learned_with_the_settings_that_both_learners_have():
    returns = worlds.keisei(turns=2 * worlds.COPIES * worlds.EPISODE, seed=1)
    assert len(returns) == 2
    assert worlds.last_tenth(returns) == returns[-1]
