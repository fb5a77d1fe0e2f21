"""Networks as ONNX files, for programs without Keisei or PyTorch.

The input is `planes` [N, 46, 9, 9], or 60 of them with `model.planes: attack60`; the outputs are
`scores` [N, 13527] of all actions and `values` [N]. Facts about the network (steps, its curve) are
in the file's metadata, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from keisei.core.neural_network import ActorCriticResTower, FlatHead
from keisei.core.policy import Evaluation, Policy, segment_log_softmax
from keisei.errors import KeiseiError
from keisei.files import open_regular, replace_file
from keisei.shogi import PLANE_SETS, Positions
from keisei.shogi.actions import HAND_PIECES, NUM_ACTIONS, SQUARES
from keisei.shogi.features import OBSERVATION_BYTES
from keisei.shogi.plane_sets import PlaneSet

_FACTS = "keisei"  # the key of the metadata


class _AllScores(nn.Module):
    """The network, with the scores of all actions instead of those that are asked for."""

    def __init__(self, network: ActorCriticResTower) -> None:
        super().__init__()
        self.network = network

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        policy, values = self.network(planes)
        head = self.network.policy
        if isinstance(head, FlatHead):
            return policy, values
        squares = policy.reshape(-1, 3 * SQUARES, head.dim)
        pieces = head.pieces.expand(squares.shape[0], -1, -1)
        vectors = torch.cat([pieces, squares], 1)
        pairs = vectors @ squares[:, 2::3].transpose(1, 2) / math.sqrt(head.dim)
        actions = torch.arange(NUM_ACTIONS)
        start, target = head.places(torch.zeros_like(actions), actions).long()
        target = (target - len(HAND_PIECES)) // 3
        return pairs.flatten(1)[:, start * SQUARES + target], values


def write_onnx(network: ActorCriticResTower, facts: dict[str, Any], file: Path) -> None:
    """Write a float32 network, and plain facts about it."""
    with _packages("writing ONNX", "onnx", "onnxscript"):
        import onnx
        import onnxscript  # noqa: F401  # PyTorch says nothing better than its name if it is missing
    # Two positions: of one, the exporter would take the batch to be 1 for ever.
    example = network.planes(np.zeros((2, OBSERVATION_BYTES), np.uint8))
    with _quietly():
        program = torch.onnx.export(
            _AllScores(network).eval(),
            (example,),
            input_names=["planes"],
            output_names=["scores", "values"],
            dynamic_shapes=({0: torch.export.Dim("positions")},),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, {_FACTS: json.dumps(facts)})
    replace_file(file, model.SerializeToString())


def read_onnx(path: Path, limit: int | None = None) -> tuple[Policy, dict[str, Any]]:
    """The network of a file that `write_onnx` wrote, and the facts about it."""
    with _packages("reading ONNX", "onnxruntime"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with open_regular(path, limit) as file:
        data = file.read()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    facts = json.loads(session.get_modelmeta().custom_metadata_map[_FACTS])
    number = session.get_inputs()[0].shape[1]
    planes = next(known for known in PLANE_SETS.values() if known.number == number)
    return partial(_evaluate, session, planes), facts


def _evaluate(session: Any, planes: PlaneSet, positions: Positions) -> Evaluation:
    inputs = {"planes": planes.make(positions.observations)}
    scores, values = session.run(["scores", "values"], inputs)
    legal = scores[positions.rows(), positions.legal]
    return Evaluation(segment_log_softmax(legal, positions.offsets), values)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """The exporter tells of packages and versions that we do not need."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


@contextlib.contextmanager
def _packages(doing: str, *names: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        missing = " ".join(names)
        raise KeiseiError(f"{doing} needs other packages: pip install {missing}") from error
