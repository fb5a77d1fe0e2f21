"""Shogi for learners: one game, many games at once, action numbers, planes and records."""

from keisei.shogi.actions import NUM_ACTIONS, IllegalActionError, PolicyOutputMapper
from keisei.shogi.attacks import attack_planes
from keisei.shogi.features import NUM_PLANES, OBSERVATION_BYTES, planes
from keisei.shogi.plane_sets import PLANE_SETS
from keisei.shogi.positions import Positions
from keisei.shogi.rules import HANDICAPS, InvalidSfenError, Outcome
from keisei.shogi.shogi_game import ShogiGame
from keisei.shogi.vector_shogi import FinishedGame, VectorShogi

__all__ = [
    "HANDICAPS",
    "NUM_ACTIONS",
    "NUM_PLANES",
    "OBSERVATION_BYTES",
    "PLANE_SETS",
    "FinishedGame",
    "IllegalActionError",
    "InvalidSfenError",
    "Outcome",
    "PolicyOutputMapper",
    "Positions",
    "ShogiGame",
    "VectorShogi",
    "attack_planes",
    "planes",
]
