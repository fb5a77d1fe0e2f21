"""Take outlines of kanji, numerals and letters from Noto Serif CJK, for src/board/outlines.ts.

The board then looks the same everywhere, and no reader needs a Japanese font. Written by hand
when the set of signs changes; the result is committed:

    pip install fonttools && apt install fonts-noto-cjk
    python web/scripts/make_outlines.py > web/src/board/outlines.ts

The font is under the SIL Open Font License 1.1, Copyright 2017-2022 Adobe.
"""

from fontTools.pens.boundsPen import BoundsPen
from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTCollection

FONT = "/usr/share/fonts/opentype/noto/NotoSerifCJK-Bold.ttc"
SIGNS = "王玉飛龍角馬金銀全桂圭香杏歩と将車行兵成一二三四五六七八九形勢KRBGSNLP"
SCALE = 0.1  # a kanji is about 100 high, as a square of the board is


def number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def outline(glyphs: object, name: str) -> str:
    """The path of a glyph, its middle at the origin, y downwards."""
    bounds = BoundsPen(glyphs)
    glyphs[name].draw(bounds)
    left, bottom, right, top = bounds.bounds
    x, y = (left + right) / 2, (bottom + top) / 2
    pen = SVGPathPen(glyphs, number)
    matrix = (SCALE, 0, 0, -SCALE, -x * SCALE, y * SCALE)
    glyphs[name].draw(TransformPen(pen, matrix))
    return pen.getCommands()


def main() -> None:
    font = next(f for f in TTCollection(FONT).fonts if "JP" in f["name"].getDebugName(1))
    glyphs, names = font.getGlyphSet(), font.getBestCmap()
    print("// Written by web/scripts/make_outlines.py from Noto Serif CJK JP Bold (OFL 1.1).")
    print("export const OUTLINES: Record<string, string> = {")
    for sign in SIGNS:
        print(f'  "{sign}": "{outline(glyphs, names[ord(sign)])}",')
    print("};")


if __name__ == "__main__":
    main()
