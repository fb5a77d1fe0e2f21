"""Worlds whose agents fire beams at what is ahead of them, and can time each other out."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from keisei.worlds.world import Bools, Codes, Ints, World, WorldSettings


class BeamSettings(WorldSettings):
    """What every world with beams can be told."""

    facing: bool = Field(
        True,
        description="Agents face somewhere: they step, turn and fire beams, and see one row behind "
        "them and the rest of the rows ahead.",
    )
    beam_length: int = Field(
        3, ge=1, le=20, description="How far a beam reaches; it is three cells wide."
    )
    timeout: int = Field(
        10,
        ge=0,
        description="Turns that an agent who was hit is off the map, including that of the hit.",
    )

    @model_validator(mode="after")
    def _beams_reach_what_is_seen(self) -> BeamSettings:
        ahead = 2 * self.vision - 1
        if self.facing and self.beam_length > ahead:
            raise ValueError(
                f"a beam_length of {self.beam_length} is more than the {ahead} cells that an agent "
                f"with a vision of {self.vision} sees ahead"
            )
        return self


class ZapSettings(BeamSettings):
    """What every world can be told in which agents zap each other."""

    zap_cost: float = Field(0.0, ge=0, description="What it costs to zap.")
    zap_fine: float = Field(0.0, ge=0, description="What it costs to be zapped.")


class BeamWorld(World):
    """A world in which agents who face somewhere fire beams, and whoever is hit may be timed out.

    A beam is three rays side by side, which begin in the row before the agent. Each of them ends at
    the first solid thing, and reaches it.
    """

    Settings: ClassVar[type[WorldSettings]] = BeamSettings
    settings: BeamSettings

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        self.times_out = self.settings.facing and self.settings.timeout > 0
        # The cells of the turn's beams, as the number of the action: for those who look on.
        self.lit: Codes = np.zeros(self.grid.shape[1], np.uint8)
        length = np.arange(1, self.settings.beam_length + 1)
        aside = np.arange(-1, 2)[:, None] * np.roll(self.ways, -1)[:, None, None]
        self._rays: Ints = length * self.ways[:, None, None] + aside  # [ways, rays, cells]

    def reset(self) -> None:
        self.lit[:] = 0
        super().reset()

    def begin_turn(self) -> None:
        self.lit[:] = 0
        super().begin_turn()

    def beam(
        self, agent: int, firing: Bools, action: str, ends_at: str | None = None
    ) -> tuple[Ints, Ints, Bools]:
        """The copies where an agent fires, the cells ahead of it [those, rays, cells], those hit.

        A ray ends at what is solid, or at this entity if one is named.
        """
        copies = np.flatnonzero(firing)
        cells = (
            self.positions[agent, copies][:, None, None] + self._rays[self.facing[agent, copies]]
        )
        seen = self.look(cells)
        ends = solid = self.is_solid(seen)
        if ends_at is not None:
            ends = solid | self.shows(ends_at)[seen]
        reached = np.ones_like(ends)
        reached[..., 1:] = ~np.logical_or.accumulate(ends, axis=-1)[..., :-1]
        self.lit[cells[reached & ~solid]] = self.actions.index(action)
        return copies, cells, reached

    def hits(self, agent: int, firing: Bools, action: str) -> tuple[Ints, Ints]:
        """The agents that a beam reaches, and in which copies: rows and copies, as many of each."""
        copies, cells, reached = self.beam(agent, firing, action)
        where = np.where(reached, cells, -1).reshape(len(copies), 1, -1)
        hit = (self.positions[:, copies].T[:, :, None] == where).any(axis=2)  # [copies, agents]
        place, rows = np.nonzero(hit)
        return rows, copies[place]

    def lit_of(self, copy: int) -> list[tuple[int, int, int]]:
        """The cells of a copy that beams went through in this turn: row, column, action."""
        size = len(self.lit) // self.copies
        mine = self.lit[copy * size : (copy + 1) * size]
        return [
            (cell // self._stride - self.rim, cell % self._stride - self.rim, int(mine[cell]))
            for cell in np.flatnonzero(mine).tolist()
        ]


class ZapWorld(BeamWorld):
    """A world in which agents zap each other."""

    facing_actions = ("zap",)
    Settings: ClassVar[type[WorldSettings]] = ZapSettings
    settings: ZapSettings
    state_names = (*BeamWorld.state_names, "zaps")
    agent_names = (*BeamWorld.agent_names, "zaps")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        self.zaps: Ints = np.zeros((self.num_agents, copies), np.int64)  # that hit, this episode

    def reset(self) -> None:
        self.zaps[:] = 0
        super().reset()

    def zap(self, agent: int, actions: Ints) -> None:
        """Let an agent zap where it chose to: whoever is hit is fined and timed out."""
        if not self.settings.facing:
            return
        firing = actions == self.actions.index("zap")
        if not firing.any():
            return
        self.rewards[agent] -= self.settings.zap_cost * firing
        rows, copies = self.hits(agent, firing, "zap")
        self.rewards[rows, copies] -= self.settings.zap_fine
        np.add.at(self.zaps[agent], copies, 1)
        self.time_out(rows, copies, self.settings.timeout)

    def metrics(self) -> dict[str, Any]:
        return {"zaps": self.zaps} if self.settings.facing else {}
