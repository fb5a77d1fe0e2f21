"""How the docs' commands are made short enough for a test, or why one is not run.

The first rule whose pattern is found in a command holds; a command without a rule is run as it is.
"""

import re
import shlex
from dataclasses import dataclass, field

TINY = [
    "training.total_timesteps=256",
    "training.parallel.num_workers=2",
    "training.parallel.num_envs_per_worker=4",
    "training.parallel.rollout_length=32",
    "training.minibatch_size=64",
    "model.depth=1",
    "model.width=8",
    "env.move_limit=40",
    "evaluation.games=2",
    "evaluation.final_games=2",
    "logging.tensorboard=false",
]
TINY_WORLD = [
    "copies=4",
    "epochs=2",
    "world_settings.max_turns=20",
    "double_dqn.hidden=[16]",
    "double_dqn.batch_size=8",
    "ppo.hidden=[16]",
    "ppo.batch_size=8",
]


def overrides(settings):
    return [word for setting in settings for word in ("-o", setting)]


@dataclass(frozen=True)
class Rule:
    """What happens to the commands in which the pattern is found."""

    pattern: str
    end: list[str] = field(default_factory=list)  # comes after the command: the last word counts
    change: dict[str, str] = field(default_factory=dict)  # patterns, and what stands there instead
    how: str = "run"  # serve, usi, keys: started, asked, ended
    why_not: str = ""  # why it is not run; a test that does so by path::name


ONE_PROCESS = overrides([*TINY, "training.parallel.enabled=false"])
CLUSTER = "tests/cluster/test_"
RULES = [
    Rule(r"^(make|pip|docker) ", why_not="installs; CI runs make lint, make docs and make test"),
    Rule(r"^source ", why_not="the test has its own environment"),
    Rule(r"^export PIP_", why_not="for pip"),
    Rule(r"^(export KEISEI_PICTURES|pytest )", why_not="make test has these tests, too"),
    Rule(r"^ray ", why_not="two machines, and a token in the user's home"),
    Rule(
        r"^keisei train .*--ray",
        why_not=f"{CLUSTER}nodes.py::test_training_goes_on_when_a_node_is_killed",
    ),
    Rule(
        r"^keisei evaluate .*--ray",
        why_not=f"{CLUSTER}work.py::test_evaluate_shows_a_match_that_was_played_on_the_cluster",
    ),
    Rule(
        r"^keisei ladder .*--ray",
        why_not=f"{CLUSTER}work.py::test_a_ladder_on_the_cluster_rates_players_between_the_references",
    ),
    Rule(
        r"^keisei worlds sweep .*--ray",
        why_not=f"{CLUSTER}work.py::test_a_sweep_on_the_cluster_trains_every_combination"
        "_and_goes_on_where_it_was",
    ),
    Rule(
        r"^keisei worlds train .*--ray",
        why_not=f"{CLUSTER}split_world.py::test_a_world_on_a_cluster_has_the_numbers_of_one_process",
    ),
    # The stretches of one run: each goes on where the one before has ended.
    Rule(r"--resume .*learning_rate", overrides(["training.total_timesteps=2048"])),
    Rule(r"--resume .*opponent_shares", overrides(["training.total_timesteps=1024"])),
    Rule(r"^keisei train --resume", overrides(["training.total_timesteps=512"])),
    Rule(
        r"^keisei train .*opponent_shares",  # of four workers
        overrides(setting for setting in TINY if "num_workers" not in setting),
    ),
    Rule(
        r"^keisei train .*training\.start",  # the network has its shape
        overrides(setting for setting in TINY if "model" not in setting),
    ),
    Rule(r"^keisei train .*training\.parallel", overrides(TINY)),
    Rule(r"^keisei train\b", ONE_PROCESS),
    Rule(r"^keisei worlds train\b", overrides(TINY_WORLD)),
    Rule(r"^keisei worlds watch .*--human", how="keys"),
    Rule(r"^keisei worlds schelling\b", ["--epochs", "1", *overrides(["copies=2"])]),
    Rule(r"^keisei worlds evaluate\b", ["--episodes", "2"]),
    Rule(r"^keisei evaluate\b", ["--games", "2"], {r"nodes=\d+": "nodes=2"}),
    Rule(r"^keisei rate\b", ["--minutes", "0"], {r"nodes=\d+": "nodes=2"}),
    Rule(r"^keisei ladder\b", ["--games", "2", "--minutes", "0.01"], {r"--nodes \d+": "--nodes 2"}),
    Rule(r"^keisei usi\b", how="usi"),
    Rule(r"^keisei serve\b", ["--port", "0", "--no-open"], {r"\bDIR\b": "runs"}, how="serve"),
]
# The same for Python: a page's script with these texts changed.
PYTHON = {
    "README.md": {
        '"training.total_timesteps=131072"': ", ".join(
            f'"{setting}"' for setting in [*TINY, "training.parallel.enabled=false"]
        )
    },
    "docs/parallel.md": {
        '"training.parallel.num_workers=2"': ", ".join(f'"{setting}"' for setting in TINY)
    },
    "docs/worlds.md": {"copies=128": "copies=8", "epochs=50": "epochs=1"},
}
PYTHON_ELSEWHERE = {
    "docs/python.md": "tests/library/test_wheel.py::"
    "test_the_blocks_of_the_page_run_in_an_empty_folder",
    "docs/worlds/tutorial.md": "tests/worlds/test_tutorial.py::"
    "test_the_tutorial_runs_from_its_first_line_to_its_last",
}


def rule_for(words):
    line = shlex.join(words)
    return next((rule for rule in RULES if re.search(rule.pattern, line)), Rule(""))


def shortened(words, rule):
    """The words of the command that is run."""
    line = shlex.join(words)
    for pattern, text in rule.change.items():
        line = re.sub(pattern, text, line)
    return [*shlex.split(line), *rule.end]
