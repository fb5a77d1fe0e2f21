"""SocialJax's Clean Up: turns per processor second of agents whose networks act.

Needs a clone of SocialJax in PYTHONPATH, which is not on PyPI, and JAX.
"""

from __future__ import annotations

import argparse
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import pin_to_one_core, publish

pin_to_one_core()

import distrax  # noqa: E402
import flax.linen as nn  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import socialjax  # noqa: E402

AGENTS, HIDDEN, TURNS = 7, (256, 128), 50


class Plain(nn.Module):
    """Plain layers of the sizes that Keisei's agents have by default."""

    actions: int

    @nn.compact
    def __call__(self, seen: Any) -> tuple[Any, Any]:
        seen = seen.reshape((seen.shape[0], -1)).astype(jnp.float32)
        for size in HIDDEN:
            seen = nn.relu(nn.Dense(size)(seen))
        out = nn.Dense(self.actions + 1)(seen)
        return distrax.Categorical(logits=out[:, :-1]), out[:, -1]


def make_network(name: str, actions: int) -> nn.Module:
    """Plain layers, or the filters of SocialJax's own IPPO."""
    if name == "mlp":
        return Plain(actions)
    # By its file: the package that it is in imports what writes runs to the web.
    file = Path(socialjax.__file__).parents[1] / "algorithms" / "utils" / "networks.py"
    own: nn.Module = runpy.run_path(str(file))["ActorCritic"](actions, activation="relu")
    return own


def make_play(network_name: str, copies: int) -> tuple[Callable[[Any], Any], Any]:
    """A compiled function that plays `TURNS` turns in all copies, and the state it starts from."""
    env = socialjax.make("clean_up", num_agents=AGENTS, shared_rewards=False, cnn=True, jit=True)
    network = make_network(network_name, env.action_space().n)
    seen_by_one = jnp.zeros((1, *env.observation_space()[0].shape))
    keys = jax.random.split(jax.random.PRNGKey(1), AGENTS)
    weights = jax.vmap(lambda key: network.init(key, seen_by_one))(keys)  # one set for each agent

    def turn(state: Any, _: None) -> tuple[Any, Any]:
        world, seen, key = state
        key, acting, stepping = jax.random.split(key, 3)
        by_agent = jnp.swapaxes(seen, 0, 1)

        def act(own: Any, looks: Any, draw: Any) -> Any:
            return network.apply(own, looks)[0].sample(seed=draw)

        actions = jax.vmap(act)(weights, by_agent, jax.random.split(acting, AGENTS))
        seen, world, rewards, _, _ = jax.vmap(env.step)(
            jax.random.split(stepping, copies), world, list(actions)
        )
        return (world, seen, key), rewards.sum()

    seen, world = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(2), copies))
    play = jax.jit(lambda state: jax.lax.scan(turn, state, None, TURNS))
    return play, (world, seen, jax.random.PRNGKey(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--network", choices=["mlp", "cnn"], default="mlp")
    parser.add_argument("--copies", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=10, help="of processor time")
    options = parser.parse_args()
    play, state = make_play(options.network, options.copies)
    state, _ = jax.block_until_ready(play(state))  # compiles
    turns, start = 0, time.process_time()
    while (spent := time.process_time() - start) < options.seconds:
        state, _ = jax.block_until_ready(play(state))
        turns += TURNS * options.copies
    setup = f"{AGENTS} agents, {options.copies} copies, {options.network}"
    publish({"acting": turns / spent}, setup, {"jax": jax.__version__})


if __name__ == "__main__":
    main()
