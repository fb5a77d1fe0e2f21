"""Paint the wood of the board, `web/public/wood.webp`: straight grain, as of a kaya board.

Written once by hand and committed: python web/scripts/make_wood.py
"""

from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 720, 792
LIGHT, DARK = np.array([240, 205, 140.0]), np.array([208, 160, 92.0])
TARGET = Path(__file__).parents[1] / "public" / "wood.webp"


def noise(rng: np.random.Generator, columns: int, rows: int) -> np.ndarray:
    """Smooth noise between 0 and 1 with so many bumps across and down."""
    coarse = Image.fromarray(rng.random((rows + 1, columns + 1)).astype(np.float32))
    return np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))


def main() -> None:
    rng = np.random.default_rng(7)
    x = np.linspace(0, 1, WIDTH)[None, :] + 0.012 * (noise(rng, 3, 4) - 0.5)
    x += 0.006 * (noise(rng, 9, 3) - 0.5)
    # Year rings: a slow rise and a steep fall, closer together towards one side.
    rings = (46 * x + 9 * x**2) % 1.0
    rings = np.where(rings < 0.82, rings / 0.82, (1 - rings) / 0.18) ** 2.2
    strength = 0.35 + 0.65 * noise(rng, 40, 1)
    fibres = noise(rng, 240, 9) * 0.6 + noise(rng, 320, 24) * 0.4
    tone = 0.42 * rings * strength + 0.34 * (fibres - 0.5) + 0.25 * noise(rng, 4, 2)
    tone = np.clip(tone, 0, 1)[..., None]
    pixels = LIGHT * (1 - tone) + DARK * tone
    Image.fromarray(pixels.astype(np.uint8)).save(TARGET, quality=82, method=6)


if __name__ == "__main__":
    main()
