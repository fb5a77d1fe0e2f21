"""A world as a picture, and as coloured text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from keisei.worlds.beams import BeamWorld
from keisei.worlds.entities import Entity
from keisei.worlds.grid import WAY_STEPS
from keisei.worlds.world import World

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

# Colours that are told apart by all eyes; agents take them in turn.
AGENT_COLORS = ("#0072b2", "#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#e69f00", "#7b3294")
CELL = 20  # pixels
RIM = "#33333a"
BEAM_COLORS = {"clean": "#b8f2ff"}  # of other beams:
BEAM_COLOR = "#ffe14d"
ARROWS = "^>v<"
LINE = 14  # pixels of a line of text


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
    for row, column, color in _beams_of(world, copy):
        box = (column * CELL + 6, row * CELL + 6, (column + 1) * CELL - 7, (row + 1) * CELL - 7)
        brush.rectangle(box, fill=color)
    for agent, (row, column) in enumerate(world.places(copy)):
        if world.settings.facing and world.can_act[agent, copy]:
            _draw_nose(brush, row, column, int(world.facing[agent, copy]))
    return image


def frame(world: World) -> Image:
    """The first copy of a world with the turn and what is what below it: a picture of a film."""
    from PIL import Image, ImageDraw, ImageFont

    drawn = picture(world)
    things = [(entity.name, entity) for entity in _legend(world)]
    said = f"turn {world.turn:>{len(str(world.max_turns))}} of {world.max_turns}"
    font, places, x, line = ImageFont.load_default(), [], 4, 0
    for name, entity in [(said, None), *things]:
        width = int(font.getlength(name)) + (0 if entity is None else LINE) + 10
        if x > 4 and x + width > drawn.width:
            x, line = 4, line + 1
        places.append((x, line, name, entity))
        x += width
    image = Image.new("RGB", (drawn.width, drawn.height + (line + 1) * LINE + 4), "white")
    image.paste(drawn)
    brush = ImageDraw.Draw(image)
    for x, line, name, entity in places:
        y = drawn.height + 2 + line * LINE
        if entity is not None:
            brush.rectangle((x, y + 2, x + 9, y + 11), fill=entity.color, outline=RIM)
            x += LINE
        brush.text((x, y + 1), name, RIM, font=font)
    return image


def _legend(world: World) -> list[Entity]:
    """What has to be explained: agents have their colours and numbers, other bodies a rim."""
    return [entity for entity in world.entities if entity.name != "agent"]


def _beams_of(world: World, copy: int) -> list[tuple[int, int, str]]:
    """The cells that beams went through in this turn: row, column, colour."""
    if not isinstance(world, BeamWorld):
        return []
    return [
        (row, column, BEAM_COLORS.get(world.actions[action], BEAM_COLOR))
        for row, column, action in world.lit_of(copy)
    ]


def _draw_nose(brush: ImageDraw, row: int, column: int, way: int) -> None:
    """Where an agent looks."""
    down, right = WAY_STEPS[way]
    x, y = (column + 0.5 + 0.36 * right) * CELL, (row + 0.5 + 0.36 * down) * CELL
    brush.ellipse((x - 3, y - 3, x + 2, y + 2), fill="white", outline=RIM)


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

    An agent is its number; the second letter says where it faces, or else what kind of body it has,
    if not a plain one.
    """
    text = Text()
    agents = _agents_at(world, copy)
    beams = {(row, column): color for row, column, color in _beams_of(world, copy)}
    for row, cells in enumerate(world.cells_of(copy)):
        for column, entities in enumerate(cells):
            top, ground = entities[-1], entities[0]
            letter, color = top.letter, top.color
            agent = agents.get((row, column)) if top.layer else None
            if agent is not None:
                kind = "" if top.name == "agent" else top.letter
                if world.settings.facing:
                    kind = ARROWS[world.facing[agent, copy]]
                letter = str(agent) + kind
                style = f"bold #ffffff on {AGENT_COLORS[agent % len(AGENT_COLORS)]}"
            elif top.layer:
                style = f"bold {color} on {ground.color}"
            else:
                letter, style = " ", f"on {beams.get((row, column), ground.color)}"
            text.append(f"{letter:<2}"[:2], style)
        text.append("\n")
    return text


def legend_text(world: World) -> Text:
    """What the letters and colours of `colored_text` stand for, in one line."""
    text = Text()
    for entity in _legend(world):
        style = f"bold {entity.color}" if entity.layer else f"on {entity.color}"
        text.append(f"{entity.letter if entity.layer else ' '} ", style)
        text.append(f" {entity.name}  ")
    return text
