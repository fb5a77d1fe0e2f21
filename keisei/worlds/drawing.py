"""A world as a picture, and as coloured text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from keisei.worlds.entities import Entity
from keisei.worlds.world import World

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

# Colours that are told apart by all eyes; agents take them in turn.
AGENT_COLORS = ("#0072b2", "#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#e69f00", "#7b3294")
CELL = 20  # pixels
RIM = "#33333a"


def picture(world: World, copy: int = 0) -> Image:
    """One copy of a world; agents have their numbers on them.

    >>> from keisei.worlds.treasure_hunt import TreasureHunt
    >>> world = TreasureHunt()
    >>> world.reset()
    >>> picture(world).size
    (420, 420)
    """
    from PIL import Image, ImageDraw

    rows = world.cells_of(copy)
    image = Image.new("RGB", (len(rows[0]) * CELL, len(rows) * CELL))
    brush = ImageDraw.Draw(image)
    agents = _agents_at(world, copy)
    for row, cells in enumerate(rows):
        for column, entities in enumerate(cells):
            for entity in entities:
                agent = agents.get((row, column)) if entity.layer else None
                if agent is None:
                    _draw(brush, entity.shape, row, column, entity.color)
                else:
                    _draw_agent(brush, entity, row, column, agent)
    return image


def _draw_agent(brush: ImageDraw, entity: Entity, row: int, column: int, agent: int) -> None:
    """In the agent's colour and with its number; a rim shows what kind of body it has."""
    color = AGENT_COLORS[agent % len(AGENT_COLORS)]
    rim = (RIM, 1) if entity.name == "agent" else (entity.color, 3)
    _draw(brush, entity.shape, row, column, color, *rim)
    brush.text(((column + 0.5) * CELL, (row + 0.5) * CELL), str(agent), "white", anchor="mm")


def _agents_at(world: World, copy: int) -> dict[tuple[int, int], int]:
    """Which agent stands where: (row, column)."""
    places = world.places(copy)
    return {place: agent for agent, place in enumerate(places)}


def _draw(
    brush: ImageDraw,
    shape: str,
    row: int,
    column: int,
    color: str,
    rim: str = RIM,
    width: int = 1,
) -> None:
    left, top = column * CELL, row * CELL
    right, bottom = left + CELL - 1, top + CELL - 1
    if shape == "square":
        brush.rectangle((left, top, right, bottom), fill=color)
    elif shape == "circle":
        box = (left + 2, top + 2, right - 2, bottom - 2)
        brush.ellipse(box, fill=color, outline=rim, width=width)
    else:
        x, y, reach = (left + right) / 2, (top + bottom) / 2, CELL / 2 - 2
        corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
        brush.polygon(corners, fill=color, outline=rim, width=width)


def colored_text(world: World, copy: int = 0) -> Text:
    """One copy of a world as two letters a cell, in colours, for a terminal.

    An agent is its number; the second letter says what kind of body it has, if not a plain one.
    """
    text = Text()
    agents = _agents_at(world, copy)
    for row, cells in enumerate(world.cells_of(copy)):
        for column, entities in enumerate(cells):
            top, ground = entities[-1], entities[0]
            letter, color = top.letter, top.color
            agent = agents.get((row, column)) if top.layer else None
            if agent is not None:
                letter = str(agent) + ("" if top.name == "agent" else top.letter)
                style = f"bold #ffffff on {AGENT_COLORS[agent % len(AGENT_COLORS)]}"
            elif top.layer:
                style = f"bold {color} on {ground.color}"
            else:
                letter, style = " ", f"on {ground.color}"
            text.append(f"{letter:<2}"[:2], style)
        text.append("\n")
    return text
