"""A network in a program without PyTorch: ONNX is one file, and run by many languages."""

import numpy as np
import onnxruntime

import keisei

keisei.load("shipped").export("shipped.onnx")  # or: keisei export shipped -o shipped.onnx
session = onnxruntime.InferenceSession("shipped.onnx")

# From here on, nothing but the rules, NumPy and ONNX Runtime.
game = keisei.shogi.ShogiGame()
while game.outcome is None and len(game.moves) < 20:
    scores, values = session.run(None, {"planes": game.planes("attack60")[None]})
    legal = game.legal_actions()
    game.step(legal[np.argmax(scores[0][legal])])
print(game)
print("moves:", " ".join(game.moves))
