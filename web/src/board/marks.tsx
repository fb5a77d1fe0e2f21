/** What is drawn on the board beside pieces: squares, coordinates, dots and arrows. */
import { memo } from "../memo";
import type { Side } from "../api";
import type { Notation } from "../store";
import { CELL_H, CELL_W, cellOf, center, MARGIN } from "./geometry";
import { OUTLINES } from "./outlines";
import { parseMove } from "./sfen";

const KANJI_NUMBERS = "一二三四五六七八九";
const INDICES = [0, 1, 2, 3, 4, 5, 6, 7, 8];

/** Lines, the four dots, and the coordinates around them. */
export const Grid = memo(function Grid({ bottom, notation }: { bottom: Side; notation: Notation }) {
  const lines = [...INDICES, 9]
    .map((i) => `M${i * CELL_W} 0V${9 * CELL_H}M0 ${i * CELL_H}H${9 * CELL_W}`)
    .join("");
  return (
    <g class="grid">
      <path d={lines} class="lines" />
      <rect width={9 * CELL_W} height={9 * CELL_H} class="border" />
      {[3, 6].flatMap((x) =>
        [3, 6].map((y) => <circle cx={x * CELL_W} cy={y * CELL_H} r="6.5" class="star" />),
      )}
      {INDICES.map((i) => (
        <text x={(i + 0.5) * CELL_W} y={-MARGIN.top / 2 + 10} class="coordinate">
          {bottom === "black" ? 9 - i : i + 1}
        </text>
      ))}
      {INDICES.map((i) => {
        const rank = bottom === "black" ? i : 8 - i;
        const x = 9 * CELL_W + MARGIN.right / 2;
        const y = (i + 0.5) * CELL_H;
        return notation === "japanese" ? (
          <path
            d={OUTLINES[KANJI_NUMBERS[rank]!]}
            transform={`translate(${x} ${y}) scale(.25)`}
            class="coordinate"
          />
        ) : (
          <text x={x} y={y + 9} class="coordinate">
            {"abcdefghi"[rank]}
          </text>
        );
      })}
    </g>
  );
});

export function SquareMark({ square, bottom, kind }: { square: string; bottom: Side; kind: string }) {
  const { row, column } = cellOf(square, bottom);
  const place = { x: column * CELL_W, y: row * CELL_H, width: CELL_W, height: CELL_H };
  return <rect {...place} class={`mark ${kind}`} />;
}

/** Where the chosen piece may go: a dot, or a frame around what it would take. */
export function Target({ square, bottom, taken }: { square: string; bottom: Side; taken: boolean }) {
  const { x, y } = center(square, bottom);
  if (!taken) return <circle cx={x} cy={y} r="14" class="target" />;
  const w = CELL_W / 2 - 3;
  const h = CELL_H / 2 - 3;
  const corner = (x: number, y: number) => `M${x} ${y * (1 - 24 / h)}V${y}H${x * (1 - 24 / w)}`;
  const d = [corner(-w, -h), corner(w, -h), corner(w, h), corner(-w, h)].join("");
  return <path d={d} transform={`translate(${x} ${y})`} class="target taken" />;
}

export interface Arrow {
  usi: string;
  /** 0 to 1: how wide and how clear. */
  weight: number;
  best?: boolean;
  /** What was played instead. */
  played?: boolean;
}

/** A move as an arrow; a drop as a ring around its square with an arrow that falls into it. */
export function MoveArrow({ arrow, bottom }: { arrow: Arrow; bottom: Side }) {
  const { from, to } = parseMove(arrow.usi);
  const end = center(to, bottom);
  const drop = from.endsWith("*");
  const start = drop ? { x: end.x, y: end.y } : center(from, bottom);
  const kind = `arrow${arrow.best ? " best" : ""}${arrow.played ? " played" : ""}`;
  const opacity = 0.35 + 0.5 * arrow.weight;
  if (drop) {
    return (
      <g class={kind} opacity={opacity}>
        <circle cx={end.x} cy={end.y} r="41" class="ring" />
        <text x={end.x} y={end.y + 17} class="drop-letter">
          {from[0]}
        </text>
      </g>
    );
  }
  const width = 9 + 13 * arrow.weight;
  const length = Math.hypot(end.x - start.x, end.y - start.y);
  const angle = (Math.atan2(end.y - start.y, end.x - start.x) * 180) / Math.PI;
  const head = 26 + width;
  const neck = length - head;
  const d =
    `M0 ${-width / 2}H${neck}V${-head / 1.9}L${length} 0L${neck} ${head / 1.9}V${width / 2}H0` +
    `A${width / 2} ${width / 2} 0 0 1 0 ${-width / 2}Z`;
  return (
    <g class={kind} opacity={opacity}>
      <path d={d} transform={`translate(${start.x} ${start.y}) rotate(${angle})`} />
    </g>
  );
}
